#!/bin/sh
#SBATCH --job-name=spelunk
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=02:00:00
# The server runs on the first node, and keeps the campaign in the folder that the job was submitted from:
# sbatch slurm.sh target.wasm
set -eu
target=$1
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
umask 077
mkdir -p nats
printf 'port: 4222\njetstream { store_dir: "nats" }\nauthorization { token: "%s" }\n' "$token" > nats/server.conf
nats-server -c nats/server.conf > nats/log 2>&1 &
server=$!
trap 'kill $server' EXIT
sleep 2
# By the environment: arguments are shown to all users of a node.
export SPELUNK_NATS="nats://$token@$(hostname):4222"
# One process a node. Each writes findings to the same folder, and prints them.
srun spelunk explore "$target" --workers "$SLURM_CPUS_PER_TASK" --time 110m --max-findings 0
