// RUN: not jascend-opt %s --pass-pipeline='builtin.module(cse,remov-dead-ops)' 2>&1 | FileCheck %s --check-prefix=TYPO
// TYPO:      <pass-pipeline>:1:20: error: no pass is called 'remov-dead-ops'; did you mean 'remove-dead-ops'?
// TYPO-NEXT: {{^}}builtin.module(cse,remov-dead-ops){{$}}
// TYPO-NEXT: {{^}}                   ^{{$}}

// RUN: not jascend-opt %s --pass-pipeline='builtin.module(canonicalise)' 2>&1 | FileCheck %s --check-prefix=UPSTREAM
// UPSTREAM: <pass-pipeline>:1:16: error: no pass is called 'canonicalise'; did you mean 'canonicalize'?

// RUN: not jascend-opt %s --pass-pipeline='builtin.module(fold-transposes{depth=3})' 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: <pass-pipeline>:1:16: error: pass 'fold-transposes' has no option 'depth' (options: it has none)

// RUN: not jascend-opt %s --pass-pipeline='builtin.module(canonicalize{depth=3})' 2>&1 | FileCheck %s --check-prefix=UPOPTION
// UPOPTION: <pass-pipeline>:1:16: error: pass 'canonicalize': no such option depth

// RUN: not jascend-opt %s --pass-pipeline='builtin.module(func.fun(cse))' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// ANCHOR: <pass-pipeline>:1:16: error: no operation is called 'func.fun'

// RUN: not jascend-opt %s --pass-pipeline='builtin.module(func.func(cse)' 2>&1 | FileCheck %s --check-prefix=PAREN
// PAREN: <pass-pipeline>:1:15: error: missing ')'

// RUN: not jascend-opt %s --pass-pipeline='builtin.module(any(remove-dead-ops))' 2>&1 | FileCheck %s --check-prefix=ANY
// ANY: <pass-pipeline>:1:16: error: pass 'remove-dead-ops' cannot run on 'any'; name the operation

// RUN: not jascend-opt %s --pass-pipeline='builtin.module(func.func(symbol-dce))' 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: invalid-pipeline.mlir:[[#@LINE+1]]:1: error: 'func.func' op  was scheduled to run under SymbolDCE, but does not define a symbol table
func.func @f() { return }
