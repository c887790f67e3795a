//===- BufferizableOpInterfaceImpl.h - values to buffers --------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define FSDP_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::fsdp {

/// Lets upstream's one-shot bufferization take the local ops and collectives.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace mlir::fsdp

#endif // FSDP_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
