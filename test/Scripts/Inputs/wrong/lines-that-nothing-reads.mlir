// RUN: fsdp-opt %s | FileCheck %s --check-prefixes=CHECK,UNUSED
// RUN: fsdp-opt %s | \
// RUN:   FileCheck %s --check-prefix=OTHER

// CHECK-LABEL: func @f
// CHECK-NXT:   return
// CHECKS:      return
// CHECK :      return
// OTHER-NEXT:  return
// THIRD-NOT:   return
// expected-error @below {{nothing}}
// Note: this line is a sentence.
func.func @f() {
  return
}
