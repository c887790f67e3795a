// RUN: fsdp-opt %s --fsdp-bf16-memory | FileCheck %s

// CHECK-LABEL: llvm.func @copy(
// CHECK-SAME:      %[[P:.+]]: !llvm.ptr, %[[Q:.+]]: !llvm.ptr)
// CHECK-NEXT:    %[[I:.+]] = llvm.load %[[P]] {alignment = 4 : i64} : !llvm.ptr -> i16
// CHECK-NEXT:    %[[X:.+]] = llvm.bitcast %[[I]] : i16 to bf16
// CHECK-NEXT:    %[[J:.+]] = llvm.bitcast %[[X]] : bf16 to i16
// CHECK-NEXT:    llvm.store %[[J]], %[[Q]] : i16, !llvm.ptr
llvm.func @copy(%p: !llvm.ptr, %q: !llvm.ptr) {
  %x = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> bf16
  llvm.store %x, %q : bf16, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @vectors(
// CHECK:         llvm.load %{{.+}} : !llvm.ptr -> vector<8xi16>
// CHECK:         llvm.store %{{.+}}, %{{.+}} : vector<8xi16>, !llvm.ptr
llvm.func @vectors(%p: !llvm.ptr, %q: !llvm.ptr) {
  %x = llvm.load %p : !llvm.ptr -> vector<8xbf16>
  llvm.store %x, %q : vector<8xbf16>, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @parts(
// CHECK:         llvm.shufflevector %{{.+}}, %{{.+}} [0, 1] : vector<4xi16>
// CHECK-NEXT:    llvm.bitcast %{{.+}} : vector<2xi16> to vector<2xbf16>
llvm.func @parts(%x: vector<4xbf16>) -> vector<2xbf16> {
  %low = llvm.shufflevector %x, %x [0, 1] : vector<4xbf16>
  llvm.return %low : vector<2xbf16>
}

// CHECK-LABEL: llvm.func @argument(
// CHECK-SAME:      %[[A:.+]]: i16, %{{.+}}: f16)
// CHECK-NEXT:    llvm.bitcast %[[A]] : i16 to bf16
llvm.func @argument(%x: bf16, %y: f16) {
  llvm.return
}

// CHECK-LABEL: llvm.func @caller(
// CHECK-SAME:      %[[A:.+]]: i16, %[[H:.+]]: f16)
// CHECK:         %[[I:.+]] = llvm.bitcast %{{.+}} : bf16 to i16
// CHECK-NEXT:    llvm.call @argument(%[[I]], %[[H]]) : (i16, f16) -> ()
llvm.func @caller(%x: bf16, %y: f16) {
  llvm.call @argument(%x, %y) : (bf16, f16) -> ()
  llvm.return
}

// CHECK-LABEL: llvm.func @negative_f16(
// CHECK-NEXT:    llvm.load %{{.+}} : !llvm.ptr -> f16
// CHECK-NEXT:    llvm.store %{{.+}}, %{{.+}} : f16, !llvm.ptr
llvm.func @negative_f16(%p: !llvm.ptr, %q: !llvm.ptr) {
  %x = llvm.load %p : !llvm.ptr -> f16
  llvm.store %x, %q : f16, !llvm.ptr
  llvm.return
}
