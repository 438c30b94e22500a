//! The edges of a module, and the code that counts them.

use crate::calls::Calls;
use crate::cfg::{Cfg, Site};
use crate::code::{Code, Scratch};
use crate::flow::build;
use crate::names::{FunctionName, identities, location};
use crate::placement::{Placed, Wanted, place};
use crate::weave::{Action, Insert, Places, Weaver};
use crate::{Edges, Options};
use serde::{Deserialize, Serialize};
use walrus::{FunctionId, Module};

/// What a module's edges are called. An edge's id is its index here, and that of its counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeMap {
    /// Every function of the target, by index, imported ones too.
    pub functions: Vec<FunctionName>,
    /// The counted edges. Empty in the hashed mode, where an edge has no place of its own.
    pub edges: Vec<Edge>,
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

/// What counting a module's functions needs to know.
pub(crate) struct Counting<'a> {
    pub options: &'a Options,
    pub calls: &'a Calls,
    pub names: &'a [FunctionName],
    pub places: Places,
    /// Address of the counter of the first edge.
    pub counters: u32,
    /// Address of the counter that all edges share which are only there for the budget.
    pub shared: u32,
    /// Address of the mark of the first functions that have edges of their own, and for how many one stands; 0 where there
    /// are none.
    pub entered: (u32, u32),
}

impl Counting<'_> {
    /// Adds counters to these functions; returns the edges that got one of their own.
    pub(crate) fn count(&self, module: &mut Module, functions: &[FunctionId]) -> Vec<Edge> {
        let identities = identities(self.names);
        let (mut edges, mut entries) = (Vec::new(), 0);
        for &id in functions {
            let before = edges.len();
            self.function(module, id, identities[id.index()], &mut edges);
            if edges.len() > before {
                let (marks, together) = self.entered;
                if let Some(mark) = u32::checked_div(entries, together) {
                    self.enter(module, id, marks + mark);
                }
                entries += 1;
            }
        }
        edges
    }

    /// Has a function say that it was entered.
    ///
    /// ```wat
    /// (i32.store8 $p offset=MARK (i32.const 0) (i32.const 1))
    /// ```
    fn enter(&self, module: &mut Module, id: FunctionId, mark: u32) {
        let function = module.funcs.get_mut(id).kind.unwrap_local_mut();
        let mut code = Code::new();
        self.places.private.raise(&mut code, mark);
        let entry = function.entry_block();
        function.block_mut(entry).instrs.splice(0..0, code);
    }

    fn function(&self, module: &mut Module, id: FunctionId, identity: u64, edges: &mut Vec<Edge>) {
        let index = id.index();
        let is_counted = self.names[index].is_counted;
        let wanted = Wanted {
            edges: is_counted && self.options.edges == Edges::Static,
            cycles: self.options.budget,
            entry: self.options.budget && self.calls.multiplies[index],
        };
        let visits = is_counted && self.options.edges == Edges::Hashed;
        if !(wanted.edges || wanted.cycles || wanted.entry || visits) {
            return;
        }
        let function = module.funcs.get_mut(id).kind.unwrap_local_mut();
        let cfg = build(function);
        let mut inserts = Vec::new();
        for placed in place(&cfg, wanted) {
            let mut address = self.shared;
            if wanted.edges {
                address = self.counters + edges.len() as u32;
                edges.push(edge(&cfg, &placed, index as u32, identity));
            }
            inserts.push(Insert { site: placed.site, action: Action::Count { address, pays: placed.pays } });
        }
        if visits {
            inserts.extend(visited(&cfg, identity));
        }
        let (types, locals) = (&mut module.types, &mut module.locals);
        let (places, scratch) = (self.places, Scratch::default());
        Weaver { function, types, locals, places, scratch }.weave(&cfg, inserts);
    }
}

fn edge(cfg: &Cfg, placed: &Placed, function: u32, identity: u64) -> Edge {
    let edge = &cfg.edges[placed.edge];
    let hash = (location(identity, edge.from) >> 1) ^ location(identity, edge.to);
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
