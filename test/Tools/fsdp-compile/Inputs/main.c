/* One rank of four alone would wait for the others, so each has its thread. */
#include "step.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static fsdprtContext *contexts[4];
static float norm[4][10];

static void *run(void *argument) {
  int rank = *(int *)argument;
  float normShard[3], wqShard[6];
  uint16_t wq[24];
  for (int i = 0; i < 3; ++i)
    normShard[i] = (float)((3 * rank + i) / 4);
  memset(wqShard, 0, sizeof(wqShard));
  void *arguments[2] = {normShard, wqShard};
  void *results[2] = {norm[rank], wq};
  if (fsdprtStart(contexts[rank], "") ||
      fsdprtRun(contexts[rank], fsdprt_entry_forward, arguments, results))
    fprintf(stderr, "%s\n", fsdprtMessage(contexts[rank]));
  return NULL;
}

int main(void) {
  int64_t shape[1] = {4};
  fsdprtOptions options;
  char message[256];
  memset(&options, 0, sizeof(options));
  options.gridShape = shape;
  options.gridAxes = 1;
  if (fsdprt_artefact_abi != fsdprtAbiVersion() ||
      fsdprtCreateLocal(&options, contexts, message, sizeof(message)))
    return 1;
  pthread_t threads[4];
  int ranks[4] = {0, 1, 2, 3};
  for (int i = 0; i < 4; ++i)
    pthread_create(&threads[i], NULL, run, &ranks[i]);
  for (int i = 0; i < 4; ++i)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < 10; ++i)
    printf("%g ", norm[3][i]);
  printf("\n");
  for (int i = 0; i < 4; ++i)
    fsdprtDestroy(contexts[i]);
  return 0;
}
