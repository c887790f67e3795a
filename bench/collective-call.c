/*===- collective-call.c - what a call of a collective costs --------------===*\
|*                                                                            *|
|* Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.      *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* collective-call N gather|reduce: N calls of 64 bytes on one rank. For      *|
|* callgrind; bench/README.md has the numbers.                                *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "fsdp/Runtime/Runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: collective-call N gather|reduce\n");
    return 1;
  }
  const int64_t shape[] = {1};
  fsdprtOptions options = {0};
  options.gridShape = shape;
  options.gridAxes = 1;
  fsdprtContext *context;
  char message[200];
  if (fsdprtCreateLocal(&options, &context, message, sizeof(message))) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  fsdprtStart(context, "plan");

  static const int32_t axes[] = {0};
  static const fsdprtCollective gather = {sizeof(gather),
                                          FSDPRT_ALL_GATHER,
                                          FSDPRT_BYTES,
                                          0,
                                          0,
                                          1,
                                          64,
                                          0,
                                          "layer0_gather",
                                          axes};
  static const fsdprtCollective reduce = {sizeof(reduce),
                                          FSDPRT_REDUCE_SCATTER,
                                          FSDPRT_F32,
                                          FSDPRT_AVG,
                                          0,
                                          1,
                                          16,
                                          0,
                                          "layer0_reduce_f32",
                                          axes};
  const fsdprtCollective *records[] = {
      strcmp(argv[2], "reduce") == 0 ? &reduce : &gather};
  static char from[64], to[64];
  const void *send[] = {from};
  void *receive[] = {to};
  for (long i = 0; i < atol(argv[1]); ++i)
    if (fsdprtRunCollectives(context, records, 1, send, receive)) {
      fprintf(stderr, "%s\n", fsdprtMessage(context));
      return 1;
    }
  fsdprtDestroy(context);
  return 0;
}
