/*===- Runtime.h - the C interface of libfsdprt -------------------*- C -*-===*\
|*                                                                            *|
|* Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.      *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Two groups of functions. Compiled code calls those of                      *|
|* RuntimeFunctions.def; a launcher (fsdp-run, or a program of one's own)     *|
|* calls the others: it creates the context of each rank, starts it, runs     *|
|* entries of an artefact and reads messages and statistics. Ranks are threads*|
|* of one process, each with its own context:                                 *|
|*                                                                            *|
|*   fsdprtContext *contexts[4];                                              *|
|*   fsdprtCreateLocal(&options, contexts, message, sizeof(message));         *|
|*   // on thread r, for r = 0 .. 3:                                          *|
|*   fsdprtStart(contexts[r], planHash);                                      *|
|*   fsdprtRun(contexts[r], entry, arguments[r], results[r]);                 *|
|*   // after all threads have been joined:                                   *|
|*   fsdprtDestroy(contexts[r]);                                              *|
|*                                                                            *|
|* or each is a process, which calls fsdprtCreateRank and goes on likewise.   *|
|*                                                                            *|
|* A context belongs to one thread at a time; fsdprtAbort alone may be called *|
|* from any thread. Every function that can fail returns a status, also where *|
|* there is no memory or no thread: no exception leaves the library. A failure*|
|* is final: the context keeps the status and the message, each later call on *|
|* it returns the same status at once, and every other rank of the world      *|
|* fails too at its next or current collective, so that nobody waits for a    *|
|* rank that has given up.                                                    *|
|*                                                                            *|
|* Plain C, no header but stdint.h.                                           *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef FSDP_RUNTIME_RUNTIME_H
#define FSDP_RUNTIME_RUNTIME_H

#include <stdint.h>

/* Changes whenever a function, a type or a number in this header or in
 * RuntimeFunctions.def changes its meaning. An artefact carries the version
 * that it was compiled for; a launcher compares it with fsdprtAbiVersion(). */
#define FSDPRT_ABI_VERSION 3

#if defined(__GNUC__)
#define FSDPRT_EXPORT __attribute__((visibility("default")))
#else
#define FSDPRT_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One rank: its device, its communicator, its buffers, its first failure. */
typedef struct fsdprtContext fsdprtContext;

/* 0 is success; the other values are those of fsdprtStatusCode. An entry may
 * return any other number of its own; it is kept like ours. */
typedef int32_t fsdprtStatus;

enum fsdprtStatusCode {
  FSDPRT_SUCCESS = 0,
  FSDPRT_INVALID_ARGUMENT = 1, /* a call that no correct program makes */
  FSDPRT_OUT_OF_MEMORY = 2,
  FSDPRT_RANKS_DISAGREE = 3,     /* another collective, bucket, count, ... */
  FSDPRT_PLAN_HASH_MISMATCH = 4, /* the ranks run different programs */
  FSDPRT_TIMEOUT = 5,            /* a collective did not finish in time */
  FSDPRT_ABORTED = 6,            /* another rank failed, or fsdprtAbort */
  FSDPRT_LEAK = 7,               /* an entry left buffers behind */
  FSDPRT_DEVICE_ERROR = 8        /* what CUDA reports */
};

/* Element types of collectives. Bytes are moved and never reduced. */
enum fsdprtDtype {
  FSDPRT_F16 = 0,
  FSDPRT_BF16 = 1,
  FSDPRT_F32 = 2,
  FSDPRT_F64 = 3,
  FSDPRT_BYTES = 4
};

/* What a reduction does with the members' values, each rounded to the dtype:
 * adds them; adds them multiplied by 1/size; adds them multiplied by the
 * multiplier of the call. The multiplication comes first, the additions follow
 * in the order of the members (or in another one, see sumOrder in
 * fsdprtOptions), and each step rounds once. */
enum fsdprtReduction { FSDPRT_SUM = 0, FSDPRT_AVG = 1, FSDPRT_PREMUL = 2 };

/* What a collective does with the members' buffers; a row has `count` elements.
 *
 *   all_gather      row r of the result is the row that member r sends
 *   reduce_scatter  the result is this member's row of the sum of what is sent
 *   all_reduce      the result is the sum, the same bits on each member
 */
enum fsdprtCollectiveKind {
  FSDPRT_ALL_GATHER = 0,
  FSDPRT_REDUCE_SCATTER = 1,
  FSDPRT_ALL_REDUCE = 2
};

/* One collective, all but its buffers: a constant of the artefact. The runtime
 * checks a record when it first sees it, and plans, traces, reports and the
 * comparison between ranks all speak of this record. It must not change as long
 * as the context lives. */
typedef struct fsdprtCollective {
  uint32_t size;      /* sizeof(fsdprtCollective) for whoever wrote it */
  int32_t kind;       /* fsdprtCollectiveKind */
  int32_t dtype;      /* fsdprtDtype of the wire */
  int32_t reduction;  /* fsdprtReduction; 0 for an all_gather */
  int32_t accumulate; /* not 0: 16-bit dtypes are summed in f32, rounded once */
  int32_t axisCount;  /* entries of `axes` */
  int64_t count;      /* elements of one member's row */
  double multiplier;  /* read for FSDPRT_PREMUL only */
  const char *bucket; /* the bucket's symbol name, for messages */
  const int32_t *axes; /* the group: axes of the grid, in the order in which its
                        * members are numbered, row major; none: this rank */
} fsdprtCollective;

/* What compiled code calls. */
#define FSDPRT_CALL(name, parameters)                                          \
  FSDPRT_EXPORT fsdprtStatus name parameters;
#include "fsdp/Runtime/RuntimeFunctions.def"

/* An entry of an artefact. Arguments and results are densely packed row-major
 * buffers in the order of the manifest; the caller allocates both (128-byte
 * aligned, as fsdprtAlloc does) and keeps them until the entry has returned. */
typedef fsdprtStatus (*fsdprtEntry)(fsdprtContext *context,
                                    void *const *arguments,
                                    void *const *results);

/* An artefact is a shared library, the same file for every rank, that exports
 *
 *   const int32_t fsdprt_artefact_abi;          the FSDPRT_ABI_VERSION it needs
 *   const char fsdprt_artefact_manifest[];      JSON, ends with a zero byte
 *   fsdprtStatus fsdprt_entry_<name>(...);      an fsdprtEntry for each entry
 */
#define FSDPRT_ARTEFACT_ABI_SYMBOL "fsdprt_artefact_abi"
#define FSDPRT_ARTEFACT_MANIFEST_SYMBOL "fsdprt_artefact_manifest"
#define FSDPRT_ARTEFACT_ENTRY_PREFIX "fsdprt_entry_"

/* One collective, as a trace sees it. Times are nanoseconds of a clock that all
 * ranks of the world share; pointers die when the callback returns. */
typedef struct fsdprtTraceEvent {
  int64_t rank;
  int64_t call;     /* counts the collectives of this rank, from 1 */
  const char *kind; /* "all_gather", "reduce_scatter" or "all_reduce" */
  const char *bucket;
  int64_t bytes; /* of one rank's row */
  int64_t beginNanoseconds;
  int64_t endNanoseconds;
} fsdprtTraceEvent;

/* Called after each collective, on the thread of the rank. */
typedef void (*fsdprtTrace)(void *user, const fsdprtTraceEvent *event);

/* Called with a sentence that is worth a line and is no failure, from any
 * thread. */
typedef void (*fsdprtLog)(void *user, const char *line);

/* Zero-initialise, then set what matters. */
typedef struct fsdprtOptions {
  /* Extents of the grid of ranks; their product is the number of ranks, which
   * are numbered row major. At most 15 axes. */
  const int64_t *gridShape;
  int32_t gridAxes;
  /* How long a rank waits for the others in one collective or in fsdprtStart;
   * 0 waits for ever. */
  double timeoutSeconds;
  /* Called for each collective of each rank, from its thread; may be null. */
  fsdprtTrace trace;
  void *traceUser;
  /* For tests of a launcher: if stallCall is not 0, the thread of rank
   * stallRank never comes back from its collective number stallCall (from 1).
   */
  int64_t stallRank;
  int64_t stallCall;
  fsdprtLog log; /* may be null */
  void *logUser;
  /* Where buffers live and kernels run: "host" (also if null) or "cuda", which
   * is the GPU with the number of the local rank. */
  const char *device;
  /* What follows is for fsdprtCreateRank. How the processes exchange data:
   * "mpi" (also if null) or "nccl". */
  const char *communicator;
  /* Not 0: the caller knows which rank this process is, and which one on its
   * machine. Else a launcher's variables in the environment say so. */
  int32_t hasRank;
  int64_t rank;
  int64_t localRank;
  /* Where the ranks of "nccl" find each other: "HOST:PORT", at which rank 0
   * listens, or "file:PATH", in a folder that all of them see and at a path
   * that no other run has used. Ranks that meet at a port prove to each other
   * that they know the secret in FSDPRT_SECRET or in the file that
   * FSDPRT_SECRET_FILE names, if one is set. Null: by MPI if the process was
   * started by it, else the port after MASTER_PORT at MASTER_ADDR. */
  const char *rendezvous;
  /* For a rank on "cuda" that is alone in its process: the CUstream on which
   * everything happens, of the primary context of the rank's GPU. fsdprtRun
   * then returns as soon as the stream has the work, without having waited for
   * it, so that a graph can be captured and other work of the stream follows;
   * fsdprtDestroy waits. What fails later, the next call says, and
   * fsdprtWorldStatus. An entry runs once before it is captured: that run loads
   * kernels and makes communicators. Null: a stream of its own, which waits for
   * no other, and fsdprtRun waits. The caller has then synchronised whatever
   * writes the arguments. */
  void *stream;
  /* In which order the ranks of "local" and "mpi" add in a reduce_scatter, the
   * same on all of them: "rank" (also if null), or "ring", as Gloo's ring does:
   * in the row of member r the term of member r - 1 comes first, then they go
   * down, around, to that of member r itself (docs/Numerics.md has the rule for
   * a row's first elements). "nccl" wants null. */
  const char *sumOrder;
} fsdprtOptions;

/* The FSDPRT_ABI_VERSION of the library. */
FSDPRT_EXPORT int32_t fsdprtAbiVersion(void);

/* Creates a world whose ranks are threads of this process. On "cuda" they share
 * one GPU, and what they exchange goes by way of the host: for tests. Writes
 * one context per rank to contexts[0 .. product of gridShape - 1]. On failure
 * writes none, and a sentence of at most messageSize - 1 bytes to `message`. */
FSDPRT_EXPORT fsdprtStatus fsdprtCreateLocal(const fsdprtOptions *options,
                                             fsdprtContext **contexts,
                                             char *message,
                                             int64_t messageSize);

/* Creates the rank that this process is, in a world of as many processes as the
 * grid has ranks. With "mpi" the program has been started by mpirun or the
 * like; MPI is initialised if it was not, and then finalised at the end of the
 * process. With "nccl" the device is "cuda". The context may be null afterwards
 * only on failure, whose sentence is written as by fsdprtCreateLocal. */
FSDPRT_EXPORT fsdprtStatus fsdprtCreateRank(const fsdprtOptions *options,
                                            fsdprtContext **context,
                                            char *message, int64_t messageSize);

/* Waits until every rank of the world has called it and compares their plan
 * hashes (any text); if two differ, every rank fails with a message that names
 * both and the ranks that have them. Further lines of the text are compared
 * too: whatever else has to be equal, such as options, one thing a line. Call
 * once, before fsdprtRun. */
FSDPRT_EXPORT fsdprtStatus fsdprtStart(fsdprtContext *context,
                                       const char *planHash);

/* Runs an entry. Buffers that the entry allocated and did not free are freed
 * when it has returned, after a failure silently, else with FSDPRT_LEAK. */
FSDPRT_EXPORT fsdprtStatus fsdprtRun(fsdprtContext *context, fsdprtEntry entry,
                                     void *const *arguments,
                                     void *const *results);

/* Copies between memory of the process and a buffer of the context, wherever
 * its device keeps it; after all that the context has been asked to do before.
 */
FSDPRT_EXPORT fsdprtStatus fsdprtCopyIn(fsdprtContext *context, void *data,
                                        const void *host, int64_t bytes);
FSDPRT_EXPORT fsdprtStatus fsdprtCopyOut(fsdprtContext *context, void *host,
                                         const void *data, int64_t bytes);

/* The sentence that belongs to the context's failure, "" if there is none.
 * Lives as long as the context. */
FSDPRT_EXPORT const char *fsdprtMessage(const fsdprtContext *context);

typedef struct fsdprtStatistics {
  int64_t liveBytes;   /* allocated now, as asked for (without alignment) */
  int64_t peakBytes;   /* the largest liveBytes so far */
  int64_t liveBuffers; /* number of buffers behind liveBytes */
  int64_t calls;       /* collectives so far */
} fsdprtStatistics;

FSDPRT_EXPORT void fsdprtGetStatistics(const fsdprtContext *context,
                                       fsdprtStatistics *statistics);

/* Makes the context's rank fail, and with it the world. `reason` is a sentence
 * without a full stop. From any thread, as long as the context lives; the rank
 * itself notices in its current or next call. */
FSDPRT_EXPORT void fsdprtAbort(fsdprtContext *context, const char *reason);

/* Why the world cannot go on, success if it can. From any thread, so that a
 * process learns of a failure while the thread of its rank hangs. */
FSDPRT_EXPORT fsdprtStatus fsdprtWorldStatus(fsdprtContext *context,
                                             char *message,
                                             int64_t messageSize);

/* For ranks that are processes: 1 if the failure of the world began at this
 * one, 0 if another one has told it. Where all of them print to one terminal,
 * let that one speak. */
FSDPRT_EXPORT int32_t fsdprtFailedFirst(fsdprtContext *context);

/* For ranks that are processes, collective over all of them, on host memory.
 * `what` names the exchange, for reports, and must be the same on all ranks.
 * They wait `timeoutSeconds` for the others; 0 is as long as it takes, but not
 * for one that shows no sign of life within the world's timeout.
 *
 * fsdprtExchange: row r of `receive` (ranks x bytes) becomes rank r's `send`
 * (bytes), on every rank; with 0 bytes nobody leaves before all have come.
 * fsdprtCollect: `receive` (bytes) on rank 0 becomes `send` (bytes) of rank
 * `from`; other ranks read neither. */
FSDPRT_EXPORT fsdprtStatus fsdprtExchange(fsdprtContext *context,
                                          const char *what, const void *send,
                                          int64_t bytes, void *receive,
                                          double timeoutSeconds);
FSDPRT_EXPORT fsdprtStatus fsdprtCollect(fsdprtContext *context,
                                         const char *what, int64_t from,
                                         const void *send, int64_t bytes,
                                         void *receive, double timeoutSeconds);

/* Frees the context and all of its buffers. No thread may still use it, and no
 * other rank may be inside a collective with it. Null is allowed. */
FSDPRT_EXPORT void fsdprtDestroy(fsdprtContext *context);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FSDP_RUNTIME_RUNTIME_H */
