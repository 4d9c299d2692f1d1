// RUN: jascend-opt --help | FileCheck %s
// RUN: jascend-opt --help remove-dead-ops | FileCheck %s --check-prefix=PASS
// RUN: jascend-opt --help-pass remove-dead-ops | FileCheck %s --check-prefix=PASS
// RUN: not jascend-opt --help remove-ded-ops 2>&1 | FileCheck %s --check-prefix=TYPO

// CHECK: usage: jascend-opt [FILE]
// CHECK: --verify-diagnostics
// CHECK: passes:
// CHECK:   --remove-dead-ops {{ *}}Removes ops whose results nobody uses

// PASS: --remove-dead-ops: Removes ops whose results nobody uses
// PASS: Before:
// PASS: After:

// TYPO: <command-line>:1:20: error: no pass of ours is called 'remove-ded-ops'; did you mean remove-dead-ops?
