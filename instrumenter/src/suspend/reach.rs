//! Which functions may be left in the middle.

use crate::calls;
use crate::code::each_instr;
use std::collections::BTreeMap;
use walrus::ir::*;
use walrus::{FunctionId, Module, TypeId};

/// The functions from which `suspend` may be reached.
pub(super) struct Reach {
    /// By index.
    functions: Vec<bool>,
    type_of: Vec<TypeId>,
    /// Whether a call through a reference of this type may reach it.
    types: BTreeMap<TypeId, bool>,
}

impl Reach {
    pub(super) fn of(module: &Module, suspend: Option<FunctionId>) -> Reach {
        let count = module.funcs.iter().count();
        let (node_of_type, nodes) = calls::type_nodes(module, count);
        let mut callers = vec![Vec::new(); nodes];
        let mut referenced = Vec::new();
        for (id, function) in module.funcs.iter_local() {
            each_instr(function, |instr, _| match instr {
                Instr::Call(Call { func }) | Instr::ReturnCall(ReturnCall { func }) => {
                    callers[func.index()].push(id.index());
                }
                Instr::RefFunc(RefFunc { func }) => referenced.push(*func),
                other => callers_by_type(other).into_iter().for_each(|ty| {
                    callers[node_of_type[&ty]].push(id.index());
                }),
            });
        }
        calls::each_static_reference(module, |id| referenced.push(id));
        for id in referenced {
            callers[id.index()].push(node_of_type[&module.funcs.get(id).ty()]);
        }
        let mut reaches = vec![false; nodes];
        let mut open: Vec<usize> = suspend.iter().map(|id| id.index()).collect();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reaches[node], true) {
                open.append(&mut callers[node]);
            }
        }
        let types = node_of_type.iter().map(|(ty, node)| (*ty, reaches[*node])).collect();
        reaches.truncate(count);
        let type_of = module.funcs.iter().map(|function| function.ty()).collect();
        Reach { functions: reaches, type_of, types }
    }

    pub(super) fn function(&self, id: FunctionId) -> bool {
        self.functions[id.index()]
    }

    pub(super) fn ty(&self, id: FunctionId) -> TypeId {
        self.type_of[id.index()]
    }

    /// Whether this is a call that may not return before others went on.
    pub(super) fn call(&self, instr: &Instr) -> bool {
        match instr {
            Instr::Call(Call { func }) | Instr::ReturnCall(ReturnCall { func }) => self.function(*func),
            other => callers_by_type(other).is_some_and(|ty| self.types[&ty]),
        }
    }
}

fn callers_by_type(instr: &Instr) -> Option<TypeId> {
    match instr {
        Instr::CallIndirect(CallIndirect { ty, .. })
        | Instr::ReturnCallIndirect(ReturnCallIndirect { ty, .. })
        | Instr::CallRef(CallRef { ty })
        | Instr::ReturnCallRef(ReturnCallRef { ty }) => Some(*ty),
        _ => None,
    }
}
