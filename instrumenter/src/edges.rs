//! The edges of a module, and the code that counts them.

use crate::calls::Calls;
use crate::cfg::{Cfg, Loops, Site};
use crate::code::{Code, NewLocals, Private, Scratch};
use crate::flow::build;
use crate::names::{FunctionName, identities, location};
use crate::placement::{Placed, Wanted, place};
use crate::weave::{Action, Insert, Places, Weaver, declare, order};
use crate::{Edges, Options};
use rayon::iter::ParallelIterator;
use serde::{Deserialize, Serialize};
use walrus::{FunctionId, LocalFunction, Module, ModuleTypes};

/// What a module's edges are called. An edge's id is its index here, and that of its counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeMap {
    /// Every function of the target, by index, imported ones too.
    pub functions: Vec<FunctionName>,
    /// The counted edges. Empty in the hashed mode, where an edge has no place of its own.
    pub edges: Vec<Edge>,
    /// In the mode [`Blocks`](crate::Edges::Blocks) all that is executed as one. Their counters follow those of the edges.
    pub blocks: Vec<Block>,
}

/// A transfer of control between two blocks of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// Names the edge across builds: `hash(from) >> 1 ^ hash(to)`, as AFL has it.
    pub hash: u32,
    /// Index of the function in the original module.
    pub function: u32,
    /// Offset in the original file of the instruction that transfers control; of the first instruction of the
    /// function for its entry.
    pub from: u32,
    /// Offset in the original file of the first instruction after that.
    pub to: u32,
}

/// Instructions of which either all are executed or none: nothing leads into their midst, and none but the last can branch, trap
/// or call. The last has begun then, but need not have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Index of the function in the original module.
    pub function: u32,
    /// Offset in the original file of the first instruction.
    pub first: u32,
    /// Offset of the last one. Between them there are no others, unless instrumenting took the function apart, so that it can be left
    /// in the middle.
    pub last: u32,
}

/// What counting a module's functions needs to know.
pub(crate) struct Counting<'a> {
    pub options: &'a Options,
    pub calls: &'a Calls,
    pub names: &'a [FunctionName],
    /// Address of the counter of the first edge.
    pub counters: u32,
    /// Address of the counter that all edges share which are only there for the budget.
    pub shared: u32,
    /// Address of the mark of the first functions that have edges of their own, and for how many one stands; 0 where there
    /// are none.
    pub entered: (u32, u32),
}

/// What a function gains.
#[derive(Default)]
pub(crate) struct Plan {
    loops: Loops,
    /// In [`order`].
    inserts: Vec<Insert>,
    edges: Vec<Edge>,
    blocks: Vec<Block>,
    /// Address of the mark that it was entered.
    mark: Option<u32>,
}

impl Counting<'_> {
    /// By function, what it gains. Addresses of counters begin at 0 in each until they are [numbered](Self::number).
    pub(crate) fn plan(&self, module: &Module) -> Vec<Plan> {
        let identities = identities(self.names);
        let plan = |(id, function): (FunctionId, &LocalFunction)| {
            (id.index(), self.function(id.index(), function, identities[id.index()]))
        };
        let planned: Vec<(usize, Plan)> = module.funcs.par_iter_local().map(plan).collect();
        let mut plans: Vec<Plan> = self.names.iter().map(|_| Plan::default()).collect();
        for (index, plan) in planned {
            plans[index] = plan;
        }
        plans
    }

    /// Gives each edge and block its number and its counter's address; returns those that got one of their own.
    pub(crate) fn number(&self, plans: &mut [Plan]) -> (Vec<Edge>, Vec<Block>) {
        let edges = self.number_edges(plans);
        let (first, mut blocks) = (self.counters + edges.len() as u32, Vec::new());
        for plan in plans.iter_mut().filter(|plan| !plan.blocks.is_empty()) {
            for insert in &mut plan.inserts {
                if let Action::Enter { address } = &mut insert.action {
                    *address += first + blocks.len() as u32;
                }
            }
            blocks.append(&mut plan.blocks);
        }
        (edges, blocks)
    }

    fn number_edges(&self, plans: &mut [Plan]) -> Vec<Edge> {
        let (mut edges, mut entries) = (Vec::new(), 0);
        for plan in plans.iter_mut().filter(|plan| !plan.edges.is_empty()) {
            let first = self.counters + edges.len() as u32;
            for insert in &mut plan.inserts {
                if let Action::Count { address, .. } = &mut insert.action {
                    *address += first;
                }
            }
            edges.append(&mut plan.edges);
            let (marks, together) = self.entered;
            plan.mark = u32::checked_div(entries, together).map(|mark| marks + mark);
            entries += 1;
        }
        edges
    }

    fn function(&self, index: usize, function: &LocalFunction, identity: u64) -> Plan {
        let is_counted = self.names[index].is_counted;
        let blocks = is_counted && self.options.edges == Edges::Blocks;
        let wanted = Wanted {
            edges: blocks || is_counted && self.options.edges == Edges::Static,
            cycles: self.options.budget,
            entry: self.options.budget && self.calls.multiplies[index],
        };
        let visits = is_counted && self.options.edges == Edges::Hashed;
        if !(wanted.edges || wanted.cycles || wanted.entry || visits) {
            return Plan::default();
        }
        let cfg = build(function, &|instr| self.calls.work(instr), blocks);
        let (mut inserts, mut edges) = (Vec::new(), Vec::new());
        let mut placed = place(&cfg, wanted);
        if blocks {
            placed = crate::blocks::all_edges(&cfg, function, &placed);
        }
        for placed in placed {
            let mut action = Action::Pay { address: self.shared, steps: placed.steps };
            if wanted.edges {
                action = Action::Count { address: edges.len() as u32, steps: placed.steps };
                edges.push(edge(&cfg, &placed, index as u32, identity));
            }
            inserts.push(Insert { site: placed.site, action });
        }
        if visits {
            inserts.extend(visited(&cfg, identity));
        }
        let blocks = crate::blocks::enter(&cfg, index as u32, &mut inserts);
        order(&mut inserts);
        Plan { loops: cfg.loops, inserts, edges, blocks, mark: None }
    }
}

impl Plan {
    /// Makes the types exist that [`weave`](Self::weave) needs.
    pub(crate) fn declare(&self, types: &mut ModuleTypes, function: &LocalFunction) {
        declare(types, function, &self.loops, &self.inserts);
    }

    /// Adds the code to the function.
    pub(crate) fn weave(
        &self,
        function: &mut LocalFunction,
        types: &ModuleTypes,
        locals: &NewLocals<'_>,
        places: Places,
    ) {
        let (loops, scratch) = (&self.loops, Scratch::default());
        Weaver { function, types, locals, loops, places, scratch }.weave(&self.inserts);
        if let Some(mark) = self.mark {
            enter(function, places.private, mark);
        }
    }
}

/// Has a function say that it was entered.
///
/// ```wat
/// (i32.store8 $p offset=MARK (i32.const 0) (i32.const 1))
/// ```
fn enter(function: &mut LocalFunction, private: Private, mark: u32) {
    let mut code = Code::new();
    private.raise(&mut code, mark);
    let entry = function.entry_block();
    function.block_mut(entry).instrs.splice(0..0, code);
}

fn edge(cfg: &Cfg, placed: &Placed, function: u32, identity: u64) -> Edge {
    let edge = &cfg.edges[placed.edge];
    let mut hash = (location(identity, edge.from) >> 1) ^ location(identity, edge.to);
    if let Site::Table(_, arm) = edge.site {
        // Several may lead from one block to another.
        hash ^= location(identity, arm) >> 2;
    }
    let to = cfg.blocks[edge.to as usize].offset.unwrap_or(edge.offset);
    Edge { hash, function, from: edge.offset, to }
}

/// A visit at the head of each block.
fn visited(cfg: &Cfg, identity: u64) -> impl Iterator<Item = Insert> {
    cfg.blocks.iter().zip(0..).filter_map(move |(block, id)| {
        let location = location(identity, id) as u16;
        Some(Insert { site: Site::Before(block.head?), action: Action::Visit { location } })
    })
}
