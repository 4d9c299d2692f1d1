// RUN: jascend-opt --dump-irdl | FileCheck %s
// RUN: jascend-opt --dump-irdl -o %t && jascend-opt %t | FileCheck %s

// CHECK-DAG: irdl.dialect @ascend {
// CHECK-DAG: irdl.dialect @tile {
// CHECK-DAG: irdl.operation @iota {
// CHECK-DAG: irdl.dialect @ascendc {
