//! `wasi:filesystem`: what is done by a path below a descriptor.

use super::super::component::Value;
use super::super::operations::{self, Opening};
use super::super::preview1::system;
use super::super::system::rights;
use super::files::{TYPES, asked_for, descriptor, hash_of, new_times, stat_of};
use super::values::Args;
use super::{Call, Done, Function};

pub(super) const FUNCTIONS: &[Function] = &[
    (TYPES, "[method]descriptor.create-directory-at", PATH_TYPE, create_directory),
    (TYPES, "[method]descriptor.remove-directory-at", PATH_TYPE, remove_directory),
    (TYPES, "[method]descriptor.unlink-file-at", PATH_TYPE, unlink_file),
    (
        TYPES,
        "[method]descriptor.stat-at",
        "func(self: borrow<descriptor>, path-flags: path-flags, path: string) -> result<descriptor-stat, error-code>",
        stat,
    ),
    (
        TYPES,
        "[method]descriptor.metadata-hash-at",
        "func(self: borrow<descriptor>, path-flags: path-flags, path: string) -> result<metadata-hash-value, error-code>",
        metadata_hash,
    ),
    (
        TYPES,
        "[method]descriptor.set-times-at",
        "func(self: borrow<descriptor>, path-flags: path-flags, path: string, data-access-timestamp: new-timestamp, \
         data-modification-timestamp: new-timestamp) -> result<_, error-code>",
        set_times,
    ),
    (
        TYPES,
        "[method]descriptor.link-at",
        "func(self: borrow<descriptor>, old-path-flags: path-flags, old-path: string, new-descriptor: borrow<descriptor>, \
         new-path: string) -> result<_, error-code>",
        link,
    ),
    (
        TYPES,
        "[method]descriptor.open-at",
        "func(self: borrow<descriptor>, path-flags: path-flags, path: string, open-flags: open-flags, flags: descriptor-flags) \
         -> result<descriptor, error-code>",
        open,
    ),
    (
        TYPES,
        "[method]descriptor.readlink-at",
        "func(self: borrow<descriptor>, path: string) -> result<string, error-code>",
        read_link,
    ),
    (
        TYPES,
        "[method]descriptor.rename-at",
        "func(self: borrow<descriptor>, old-path: string, new-descriptor: borrow<descriptor>, new-path: string) \
         -> result<_, error-code>",
        rename,
    ),
    (
        TYPES,
        "[method]descriptor.symlink-at",
        "func(self: borrow<descriptor>, old-path: string, new-path: string) -> result<_, error-code>",
        symlink,
    ),
];

const PATH_TYPE: &str = "func(self: borrow<descriptor>, path: string) -> result<_, error-code>";

fn create_directory(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, path) = (descriptor(call, args)?, args.text()?);
    operations::create_directory(call, "descriptor.create-directory-at", (fd, &path))?;
    Ok(None)
}

fn remove_directory(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, path) = (descriptor(call, args)?, args.text()?);
    operations::remove_directory(call, "descriptor.remove-directory-at", (fd, &path))?;
    Ok(None)
}

fn unlink_file(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, path) = (descriptor(call, args)?, args.text()?);
    operations::unlink(call, "descriptor.unlink-file-at", (fd, &path))?;
    Ok(None)
}

/// What a path names that a function which needs these rights is called with.
fn existing(call: &mut Call<'_>, args: &mut Args, needed: u64) -> Done<u32> {
    let (fd, follows, path) = (descriptor(call, args)?, args.flags()? != 0, args.text()?);
    Ok(operations::existing(call, needed, (fd, &path), follows)?)
}

fn stat(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let ino = existing(call, args, rights::PATH_FILESTAT_GET)?;
    Ok(Some(stat_of(system(call).files.get(ino))))
}

fn metadata_hash(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    Ok(Some(hash_of(existing(call, args, rights::PATH_FILESTAT_GET)?)))
}

fn set_times(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let ino = existing(call, args, rights::PATH_FILESTAT_SET_TIMES)?;
    let (times, which) = new_times(args)?;
    operations::set_times(call, ino, times, which)?;
    Ok(None)
}

fn link(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (old_fd, follows, old) = (descriptor(call, args)?, args.flags()? != 0, args.text()?);
    let (new_fd, new) = (descriptor(call, args)?, args.text()?);
    operations::link(call, "descriptor.link-at", ((old_fd, &old), follows), (new_fd, &new))?;
    Ok(None)
}

fn open(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, follows, path) = (descriptor(call, args)?, args.flags()? != 0, args.text()?);
    let (how, (rights, flags)) = (args.flags()?, asked_for(args.flags()?));
    let inheriting = rights::DIRECTORY | rights::FILE;
    let opening = Opening { at: (fd, &path), follows, how, rights, inheriting, flags };
    let opened = operations::open(call, "descriptor.open-at", &opening)?;
    Ok(Some(Value::Handle(opened)))
}

fn read_link(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, path) = (descriptor(call, args)?, args.text()?);
    let target = operations::read_link(call, (fd, &path))?;
    Ok(Some(Value::text(&*target)))
}

fn rename(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (old_fd, old) = (descriptor(call, args)?, args.text()?);
    let (new_fd, new) = (descriptor(call, args)?, args.text()?);
    operations::rename(call, "descriptor.rename-at", (old_fd, &old), (new_fd, &new))?;
    Ok(None)
}

fn symlink(call: &mut Call<'_>, args: &mut Args) -> Done<Option<Value>> {
    let (fd, target, path) = (descriptor(call, args)?, args.text()?, args.text()?);
    operations::symlink(call, "descriptor.symlink-at", &target, (fd, &path))?;
    Ok(None)
}
