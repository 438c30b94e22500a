//! Which functions could make work without a loop, seen from the call graph.
//!
//! Work multiplies through calls in two ways: by recursion, and by functions that call others and are called
//! from several places (each of twenty functions calling the next one twice makes a million calls). A function
//! with one call site, or one that calls nothing, only does a bounded amount of work for each thing that is
//! counted already: what calls it pays for that, unless it is so much that its own entries are counted.

use crate::code::each_instr;
use crate::work;
use std::collections::BTreeMap;
use walrus::ir::*;
use walrus::{
    ConstExpr, ConstOp, ElementItems, ExportItem, FunctionId, GlobalKind, HeapType, ImportKind, Module,
    RefType, TypeId, ValType,
};

/// What was found out, by function index.
pub(crate) struct Calls {
    /// It may call itself, directly or through others.
    pub recursive: Vec<bool>,
    /// Its entries must be counted for the budget.
    pub multiplies: Vec<bool>,
    /// Functions that a reference may stand for, in order of index.
    pub referenced: Vec<FunctionId>,
    /// By node of the call graph: what calling it takes.
    work: Vec<u64>,
    node_of_type: BTreeMap<TypeId, usize>,
}

impl Calls {
    /// What an instruction takes, and what it calls.
    pub(crate) fn work(&self, instr: &Instr) -> u64 {
        let called = match instr {
            Instr::Call(Call { func }) | Instr::ReturnCall(ReturnCall { func }) => self.work[func.index()],
            Instr::CallIndirect(CallIndirect { ty, .. })
            | Instr::ReturnCallIndirect(ReturnCallIndirect { ty, .. })
            | Instr::CallRef(CallRef { ty })
            | Instr::ReturnCallRef(ReturnCallRef { ty }) => self.work[self.node_of_type[ty]],
            _ => 0,
        };
        work::of(instr) + called
    }
}

/// Reads the call graph. Linear in the size of the module.
pub(crate) fn analyse(module: &Module) -> Calls {
    let mut graph = Graph::new(module);
    let functions = module.funcs.iter().count();
    for (id, function) in module.funcs.iter_local() {
        each_instr(function, |instr, _| {
            graph.instr(id.index(), instr);
            graph.work[id.index()] += work::of(instr);
        });
    }
    let referenced = graph.references(module);
    let recursive = crate::cycles::in_cycles(&graph.edges);
    let sites = |index: usize| {
        let indirect: u32 = graph.callers_of_type(index).map(|node| graph.sites[node]).sum();
        graph.sites[index] + indirect
    };
    let mut multiplies: Vec<bool> = (0..functions)
        .map(|index| recursive[index] || !graph.edges[index].is_empty() && sites(index) >= 2)
        .collect();
    let work = graph.works(&mut multiplies);
    let recursive = recursive[..functions].to_vec();
    Calls { recursive, multiplies, referenced, work, node_of_type: graph.node_of_type }
}

/// Nodes are functions, by index, and then types: a type stands for a call through a reference.
struct Graph {
    edges: Vec<Vec<u32>>,
    /// By node: how many instructions call it.
    sites: Vec<u32>,
    node_of_type: BTreeMap<TypeId, usize>,
    type_of: Vec<TypeId>,
    is_local: Vec<bool>,
    is_referenced: Vec<bool>,
    /// By node: what the instructions of the function take.
    work: Vec<u64>,
}

impl Graph {
    fn new(module: &Module) -> Self {
        let type_of: Vec<TypeId> = module.funcs.iter().map(|function| function.ty()).collect();
        let is_local: Vec<bool> =
            module.funcs.iter().map(|f| matches!(f.kind, walrus::FunctionKind::Local(_))).collect();
        let (node_of_type, nodes) = type_nodes(module, type_of.len());
        let mut work: Vec<u64> =
            is_local.iter().map(|is_local| if *is_local { 0 } else { work::HOST_CALL }).collect();
        work.resize(nodes, 0);
        let mut edges = vec![Vec::new(); nodes];
        for import in module.imports.iter().filter(|import| import.name.starts_with("invoke_")) {
            if let ImportKind::Function(id) = import.kind {
                edges[id.index()] = invoked(module, type_of[id.index()], &node_of_type);
            }
        }
        Self {
            edges,
            sites: vec![0; nodes],
            work,
            node_of_type,
            is_referenced: vec![false; type_of.len()],
            type_of,
            is_local,
        }
    }

    fn instr(&mut self, from: usize, instr: &Instr) {
        match instr {
            Instr::Call(Call { func }) | Instr::ReturnCall(ReturnCall { func })
                if self.is_local[func.index()] || !self.edges[func.index()].is_empty() =>
            {
                self.call(from, func.index());
            }
            Instr::CallIndirect(CallIndirect { ty, .. })
            | Instr::ReturnCallIndirect(ReturnCallIndirect { ty, .. })
            | Instr::CallRef(CallRef { ty })
            | Instr::ReturnCallRef(ReturnCallRef { ty }) => self.call(from, self.node_of_type[ty]),
            Instr::RefFunc(RefFunc { func }) => self.is_referenced[func.index()] = true,
            _ => {}
        }
    }

    fn call(&mut self, from: usize, to: usize) {
        self.edges[from].push(to as u32);
        self.sites[to] += 1;
    }

    /// By node: what calling it takes beyond what its own counter pays. Functions of much work are made to be counted.
    fn works(&mut self, multiplies: &mut [bool]) -> Vec<u64> {
        let mut taken = vec![0; self.edges.len()];
        let mut is_seen = vec![false; self.edges.len()];
        for root in 0..self.edges.len() {
            let mut path = Vec::new();
            if !std::mem::replace(&mut is_seen[root], true) {
                path.push((root, 0));
            }
            while let Some((node, next)) = path.last_mut() {
                let node = *node;
                if let Some(&to) = self.edges[node].get(*next) {
                    *next += 1;
                    if !std::mem::replace(&mut is_seen[to as usize], true) {
                        path.push((to as usize, 0));
                    }
                    continue;
                }
                path.pop();
                let called = self.edges[node].iter().map(|to| taken[*to as usize]);
                let Some(is_counted) = multiplies.get_mut(node) else {
                    // A call through a reference may go to any of them.
                    taken[node] = called.max().unwrap_or(0);
                    continue;
                };
                let work = self.work[node] + called.sum::<u64>();
                *is_counted |= work > work::UNCOUNTED_MAX;
                taken[node] = if *is_counted { 0 } else { work };
            }
        }
        taken
    }

    fn callers_of_type(&self, function: usize) -> impl Iterator<Item = usize> {
        let node = self.node_of_type.get(&self.type_of[function]).copied();
        node.filter(|_| self.is_referenced[function]).into_iter()
    }

    /// Adds what is referenced outside of code, and the edges from types to functions.
    fn references(&mut self, module: &Module) -> Vec<FunctionId> {
        let mut inside = self.is_referenced.clone();
        each_static_reference(module, |id| inside[id.index()] = true);
        self.is_referenced = inside.clone();
        for export in module.exports.iter() {
            if let ExportItem::Function(id) = export.item {
                self.is_referenced[id.index()] = true;
            }
        }
        for function in 0..self.type_of.len() {
            if self.is_referenced[function] && self.is_local[function] {
                let node = self.node_of_type[&self.type_of[function]];
                self.edges[node].push(function as u32);
            }
        }
        let ids = module.funcs.iter().map(|function| function.id());
        ids.filter(|id| inside[id.index()]).collect()
    }
}

/// The types that a host's function `invoke_*` of Emscripten calls an element of a table by: its own, without the index.
fn invoked(module: &Module, ty: TypeId, node_of_type: &BTreeMap<TypeId, usize>) -> Vec<u32> {
    let own = module.types.get(ty);
    let mut nodes: Vec<u32> = module
        .types
        .iter()
        .filter(|ty| {
            ty.is_function() && own.params().get(1..) == Some(ty.params()) && own.results() == ty.results()
        })
        .map(|ty| node_of_type[&ty.id()] as u32)
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Gives each function type a node, structurally equal ones the same. With subtyping a call may reach
/// functions of other types; then all types share one node.
pub(crate) fn type_nodes(module: &Module, first: usize) -> (BTreeMap<TypeId, usize>, usize) {
    let functions = || module.types.iter().filter(|ty| ty.is_function());
    let subtyping = functions().any(|ty| !ty.is_final || ty.supertype.is_some());
    let mut shapes = BTreeMap::new();
    let mut nodes = BTreeMap::new();
    for ty in functions() {
        let key = if subtyping { Default::default() } else { (shape(ty.params()), shape(ty.results())) };
        let next = first + shapes.len();
        nodes.insert(ty.id(), *shapes.entry(key).or_insert(next));
    }
    (nodes, first + shapes.len())
}

/// Types with those that refer to types made equal: equal types may have different ids.
fn shape(types: &[ValType]) -> Vec<ValType> {
    let erase = |ty: &ValType| match ty {
        ValType::Ref(RefType { heap_type: HeapType::Concrete(_) | HeapType::Exact(_), .. }) => {
            ValType::Ref(RefType::ANYREF)
        }
        other => *other,
    };
    types.iter().map(erase).collect()
}

/// Calls `f` with each function that a global, table or element segment refers to.
pub(crate) fn each_static_reference(module: &Module, mut f: impl FnMut(FunctionId)) {
    for global in module.globals.iter() {
        if let GlobalKind::Local(init) = &global.kind {
            references_of(init, &mut f);
        }
    }
    for table in module.tables.iter() {
        table.init.iter().for_each(|init| references_of(init, &mut f));
    }
    for element in module.elements.iter() {
        match &element.items {
            ElementItems::Functions(functions) => functions.iter().copied().for_each(&mut f),
            ElementItems::Expressions(_, items) => items.iter().for_each(|item| references_of(item, &mut f)),
        }
    }
}

fn references_of(init: &ConstExpr, f: &mut impl FnMut(FunctionId)) {
    match init {
        ConstExpr::RefFunc(id) => f(*id),
        ConstExpr::Extended(ops) => {
            for op in ops {
                if let ConstOp::RefFunc(id) = op {
                    f(*id);
                }
            }
        }
        _ => {}
    }
}
