//===- launcher.c - ranks of a program of one's own -----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Runtime/Runtime.h"

#include <stdio.h>

int main(void) {
  const int64_t shape[] = {2};
  fsdprtOptions options = {0};
  options.gridShape = shape;
  options.gridAxes = 1;
  fsdprtContext *contexts[2];
  char message[256] = "";
  if (fsdprtCreateLocal(&options, contexts, message, sizeof message) !=
      FSDPRT_SUCCESS) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  for (int rank = 0; rank < 2; ++rank) {
    int64_t found = -1;
    if (fsdprtRank(contexts[rank], &found) != FSDPRT_SUCCESS || found != rank)
      return 1;
    fsdprtDestroy(contexts[rank]);
  }
  printf("runtime ABI %d\n", fsdprtAbiVersion());
  return fsdprtAbiVersion() != FSDPRT_ABI_VERSION;
}
