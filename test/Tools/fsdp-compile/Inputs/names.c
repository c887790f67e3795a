/* Calls entries whose names are none of C's; valid in C and in C++. */
#include "names.h"

#include <stdio.h>
#include <string.h>

int main(void) {
  fsdprtEntry entries[] = {fsdprt_entry_step_0, fsdprt_entry_step_0_1,
                           fsdprt_entry_step_0_2, fsdprt_entry_a__b______,
                           fsdprt_entry___};
  int64_t shape[1] = {1};
  fsdprtOptions options;
  fsdprtContext *context;
  char message[256];
  memset(&options, 0, sizeof(options));
  options.gridShape = shape;
  options.gridAxes = 1;
  if (fsdprtCreateLocal(&options, &context, message, sizeof(message)) ||
      fsdprtStart(context, ""))
    return 1;
  for (int i = 0; i < 5; ++i) {
    float one = 1, result = 0;
    void *arguments[] = {&one}, *results[] = {&result};
    if (fsdprtRun(context, entries[i], arguments, results))
      fprintf(stderr, "%s\n", fsdprtMessage(context));
    printf(i == 4 ? "%g\n" : "%g ", result);
  }
  fsdprtDestroy(context);
  return 0;
}
