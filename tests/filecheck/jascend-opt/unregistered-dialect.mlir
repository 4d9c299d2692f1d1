// RUN: jascend-opt %s --allow-unregistered-dialect | FileCheck %s
// RUN: not jascend-opt %s 2>&1 | FileCheck %s --check-prefix=ERROR

// CHECK: "foo.bar"()
// ERROR: error: operation being parsed with an unregistered dialect
"foo.bar"() : () -> ()
