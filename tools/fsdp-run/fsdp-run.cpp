//===- fsdp-run.cpp - runs entries of an artefact on N ranks --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Artefact.h"
#include "fsdp/Launcher/Inputs.h"
#include "fsdp/Launcher/Manifest.h"
#include "fsdp/Launcher/Processes.h"
#include "fsdp/Launcher/Progress.h"
#include "fsdp/Launcher/Ranks.h"
#include "fsdp/Launcher/Results.h"

#include "fsdp/Support/Interrupt.h"
#include "fsdp/Support/OutOfMemory.h"
#include "fsdp/Support/OutputFile.h"
#include "fsdp/Support/Printable.h"
#include "fsdp/Support/Version.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace cl = llvm::cl;

static cl::OptionCategory category("fsdp-run options");

static cl::opt<std::string> artefactPath(cl::Positional, cl::Required,
                                         cl::desc("<artefact>"),
                                         cl::cat(category));
static cl::opt<int64_t>
    ranksOption("ranks", cl::value_desc("N"),
                cl::desc("Number of ranks, at most 64 for threads (default: as "
                         "compiled)"),
                cl::cat(category));
static cl::opt<std::string>
    comm("comm", cl::init("local"), cl::value_desc("name"),
         cl::desc("How ranks exchange data: local (default), they are threads "
                  "of this process; mpi, each is a process that mpirun has "
                  "started; nccl, each is a process with a GPU"),
         cl::cat(category));
static cl::opt<std::string>
    device("device", cl::init("host"), cl::value_desc("name"),
           cl::desc("Where buffers live: host (default) or cuda"),
           cl::cat(category));
static cl::opt<int64_t>
    rankOption("rank", cl::value_desc("R"),
               cl::desc("Which rank this process is (default: what its "
                        "launcher's variables say)"),
               cl::cat(category));
static cl::opt<int64_t>
    localRank("local-rank", cl::value_desc("R"),
              cl::desc("With --rank: which rank of this machine, and so which "
                       "GPU (default 0)"),
              cl::cat(category));
static cl::opt<std::string>
    rendezvous("rendezvous", cl::value_desc("place"),
               cl::desc("Where ranks of nccl find each other: HOST:PORT of "
                        "rank 0, or file:PATH in a folder that all see "
                        "(default: by MPI, or MASTER_ADDR and MASTER_PORT + "
                        "1)"),
               cl::cat(category));
static cl::opt<std::string>
    sumOrder("sum-order", cl::value_desc("order"),
             cl::desc("In which order ranks of local and mpi add in a "
                      "reduce-scatter: rank (default), or ring, as Gloo does"),
             cl::cat(category));
static cl::list<std::string>
    entryNames("entry", cl::value_desc("name"),
               cl::desc("Entry to run; needed if there are several. Given more "
                        "than once, they run one after the other"),
               cl::cat(category));
static cl::list<std::string>
    in("in", cl::value_desc("file"),
       cl::desc("Arguments, a safetensors file of full tensors or the index of "
                "several (model.safetensors.index.json); with {rank} in its "
                "name a file per rank with local tensors. {entry} stands for "
                "the entry's name. May be given more than once"),
       cl::cat(category));
static cl::opt<Convert> convert(
    "convert", cl::init(Convert::None),
    cl::desc("What --in may do with a file of another dtype"),
    cl::values(clEnumValN(Convert::None, "none", "refuse it (default)"),
               clEnumValN(Convert::Widen, "widen",
                          "read f16 and bf16 as f32 or f64, and f32 as f64")),
    cl::cat(category));
static cl::opt<std::string> out("out", cl::value_desc("file"),
                                cl::desc("Results, in the same two forms"),
                                cl::cat(category));
static cl::opt<uint64_t>
    fillSeed("fill", cl::value_desc("seed"),
             cl::desc("Give arguments that no file has reproducible values"),
             cl::cat(category));
static cl::list<std::string>
    assignments("set", cl::value_desc("NAME=VALUE"),
                cl::desc("Give an argument one value, in each element and on "
                         "all ranks; may be given more than once"),
                cl::cat(category));
static cl::opt<int64_t> repeat("repeat", cl::init(1), cl::value_desc("N"),
                               cl::desc("Run the entry N times"),
                               cl::cat(category));
static cl::opt<int64_t>
    warmUp("warmup", cl::init(0), cl::value_desc("N"),
           cl::desc("Run the entry N times before, which no time counts"),
           cl::cat(category));
static cl::opt<double>
    timeout("timeout", cl::init(60), cl::value_desc("seconds"),
            cl::desc("How long ranks wait for each other (default 60)"),
            cl::cat(category));
static cl::opt<std::string>
    traceFile("trace", cl::value_desc("file"),
              cl::desc("Write when each rank was in which collective, for "
                       "chrome://tracing or Perfetto"),
              cl::cat(category));
static cl::opt<bool> list("list", cl::desc("Print the manifest and stop"),
                          cl::cat(category));
static cl::opt<std::string>
    inject("inject", cl::value_desc("fault"),
           cl::desc("For tests: stall:RANK:CALL, that rank never reaches its "
                    "collective number CALL (from 1); abi, the artefact has "
                    "another ABI version"),
           cl::cat(category));

static Error failure(const Twine &message) {
  return llvm::createStringError(message);
}

/// Threads of one process are for tests, processes are not.
static int64_t mostRanks() { return comm == "local" ? 64 : 65536; }

/// Replaces each "{entry}" in a file name.
static std::string pathOfEntry(StringRef path, const EntrySignature &entry) {
  return replaceMark(path, entryMark, entry.name);
}

/// Several entries must not write one file, and ranks that are processes meet
/// once.
static Error checkSeveralEntries() {
  if (comm != "local")
    return failure("--entry is given " + Twine(entryNames.size()) +
                   " times, but with --comm=" + comm + " a run has one entry");
  std::pair<StringRef, StringRef> written[] = {{"--out", out},
                                               {"--trace", traceFile}};
  for (auto [option, path] : written)
    if (!path.empty() && !path.contains(entryMark))
      return failure(option + "=" + path + ": expected " + entryMark +
                     " in the name, as --entry is given " +
                     Twine(entryNames.size()) + " times");
  return Error::success();
}

/// A clock of nanoseconds in 64 bits ends after three centuries.
static constexpr double kLongestTimeout = 1e9;
static constexpr int64_t kMostRepeats = 1000000000;
static constexpr int64_t kLargestRank = 65535;

static Error checkRange(const cl::opt<int64_t> &option, int64_t least,
                        int64_t most) {
  if (option >= least && option <= most)
    return Error::success();
  return failure("--" + option.ArgStr + "=" + Twine(option) + ": expected " +
                 Twine(least) + " to " + Twine(most));
}

static Error checkNumbers() {
  if (ranksOption.getNumOccurrences())
    if (Error error = checkRange(ranksOption, 1, mostRanks()))
      return error;
  if (Error error = checkRange(rankOption, 0, kLargestRank))
    return error;
  if (Error error = checkRange(localRank, 0, kLargestRank))
    return error;
  if (Error error = checkRange(repeat, 1, kMostRepeats))
    return error;
  if (Error error = checkRange(warmUp, 0, kMostRepeats))
    return error;
  // This is false for what is not a number.
  if (timeout > 0 && timeout <= kLongestTimeout)
    return Error::success();
  std::string text;
  llvm::raw_string_ostream(text)
      << "--timeout=" << llvm::format("%g", double(timeout))
      << ": expected a number of seconds above 0 and up to "
      << llvm::format("%g", kLongestTimeout);
  return failure(text);
}

/// An option that nothing reads would be a wish that is dropped.
static Error checkUse() {
  if (comm == "nccl" && localRank.getNumOccurrences() &&
      !rankOption.getNumOccurrences())
    return failure("--local-rank needs --rank");
  if (comm == "nccl" && sumOrder.getNumOccurrences())
    return failure("--sum-order needs --comm=local or mpi: NCCL adds in an "
                   "order of its own");
  const cl::Option *ofNccl[] = {&rankOption, &localRank, &rendezvous};
  for (const cl::Option *option : ofNccl)
    if (comm != "nccl" && option->getNumOccurrences())
      return failure("--" + option->ArgStr +
                     " needs --comm=nccl: with --comm=" + comm +
                     (comm == "mpi" ? " MPI knows the ranks"
                                    : " the ranks are threads of one process"));
  return Error::success();
}

/// Checks the options that need no artefact, and reads --inject.
static Error readOptions(RunOptions &options, bool &injectAbi) {
  if (comm != "local" && comm != "mpi" && comm != "nccl")
    return failure("there is no communicator '" + comm +
                   "', expected --comm=local, mpi or nccl");
  if (device != "host" && device != "cuda")
    return failure("there is no device '" + device +
                   "', expected --device=host or cuda");
  if (Error error = checkNumbers())
    return error;
  if (Error error = checkUse())
    return error;
  if (rankOption.getNumOccurrences())
    options.rank = rankOption;
  options.localRank = localRank;
  options.rendezvous = rendezvous;
  if (sumOrder.getNumOccurrences() && sumOrder != "rank" && sumOrder != "ring")
    return failure("there is no sum order '" + sumOrder +
                   "', expected --sum-order=rank or ring");
  options.sumOrder = sumOrder;
  if (entryNames.size() > 1)
    if (Error error = checkSeveralEntries())
      return error;
  options.comm = comm;
  options.device = device;
  options.repeats = repeat;
  options.warmUps = warmUp;
  options.timeoutSeconds = timeout;
  options.trace = !traceFile.empty();
  injectAbi = inject == "abi";
  if (inject.empty() || injectAbi)
    return Error::success();
  StringRef rest = inject;
  if (!rest.consume_front("stall:") ||
      rest.consumeInteger(10, options.stallRank) || !rest.consume_front(":") ||
      rest.consumeInteger(10, options.stallCall) || !rest.empty() ||
      options.stallRank < 0 || options.stallCall < 1)
    return failure("--inject=" + inject + ": expected stall:RANK:CALL or abi");
  return Error::success();
}

static Error checkArtefact(const Artefact &artefact, bool injectAbi) {
  int32_t abi = injectAbi ? FSDPRT_ABI_VERSION + 1 : artefact.abi;
  if (abi != fsdprtAbiVersion())
    return failure("'" + artefact.path + "' was compiled for ABI version " +
                   Twine(abi) + ", but the runtime has ABI version " +
                   Twine(fsdprtAbiVersion()));
  return Error::success();
}

static Error checkManifest(const Manifest &manifest,
                           const RunOptions &options) {
  StringRef target = device == "cuda" ? "cuda" : "cpu";
  if (manifest.target != target)
    return failure("the artefact is for target '" + manifest.target +
                   "', expected '" + target + "' for device '" + device + "'");
  if (ranksOption.getNumOccurrences() && ranksOption != manifest.ranks)
    return failure("the artefact was compiled for " + Twine(manifest.ranks) +
                   " ranks, but --ranks=" + Twine(ranksOption) + " asks for " +
                   Twine(ranksOption));
  if (manifest.ranks > mostRanks())
    return failure("the artefact was compiled for " + Twine(manifest.ranks) +
                   " ranks, expected 1 to " + Twine(mostRanks()) + " ranks");
  if (options.stallCall != 0 && options.stallRank >= manifest.ranks)
    return failure("--inject=" + inject + ": there is no rank " +
                   Twine(options.stallRank) +
                   ", the artefact was compiled for " + Twine(manifest.ranks) +
                   " ranks");
  return Error::success();
}

/// The entries to run, in order.
static Expected<std::vector<const EntrySignature *>>
chooseEntries(const Manifest &manifest) {
  auto names = llvm::map_range(
      manifest.entries, [](const EntrySignature &entry) { return entry.name; });
  std::string all = llvm::join(names, ", ");
  std::vector<const EntrySignature *> chosen;
  if (manifest.entries.empty())
    return failure("the artefact has no entry: its source has no public "
                   "function that a launcher can call");
  if (entryNames.empty()) {
    if (manifest.entries.size() != 1)
      return failure("the artefact has " + Twine(manifest.entries.size()) +
                     " entries, expected --entry with one of: " + all);
    chosen.push_back(&manifest.entries[0]);
  }
  for (const std::string &name : entryNames) {
    auto entry = llvm::find_if(manifest.entries, [&](const EntrySignature &e) {
      return e.name == name;
    });
    if (entry == manifest.entries.end())
      return failure("the artefact has no entry '" + name +
                     "', expected one of: " + all);
    if (llvm::is_contained(chosen, &*entry))
      return failure("--entry=" + name + " is given twice");
    chosen.push_back(&*entry);
  }
  return chosen;
}

/// What has been measured, over all ranks.
struct Measurements {
  std::vector<double> seconds; ///< of each repeat
  int64_t peakBytes;
};

static void printRun(const Manifest &manifest, const EntrySignature &entry,
                     Measurements measurements) {
  llvm::outs() << "entry=" << printable(entry.name) << "\n";
  std::vector<double> &seconds = measurements.seconds;
  llvm::sort(seconds);
  size_t middle = seconds.size() / 2;
  double median = seconds.size() % 2
                      ? seconds[middle]
                      : (seconds[middle - 1] + seconds[middle]) / 2;
  llvm::outs() << "ranks=" << manifest.ranks << " grid="
               << llvm::join(llvm::map_range(manifest.grid.shape,
                                             [](int64_t extent) {
                                               return std::to_string(extent);
                                             }),
                             "x")
               << " comm=" << comm << " device=" << device
               << (sumOrder == "ring" ? " sum-order=ring" : "") << "\n"
               << "time min=" << llvm::format("%.6f", seconds.front())
               << "s median=" << llvm::format("%.6f", median)
               << "s max=" << llvm::format("%.6f", seconds.back())
               << "s repeats=" << seconds.size() << "\n"
               << "peak_bytes=" << measurements.peakBytes << "\n";
}

/// Events in Chrome's trace event format, separated by commas: microseconds, a
/// thread per rank.
static std::string traceText(const Ranks &ranks) {
  std::string text;
  for (const TraceEvent &event : ranks.trace()) {
    llvm::json::Object object{
        {"name", event.name},
        {"cat", event.call == 0 ? "entry" : "collective"},
        {"ph", "X"},
        {"ts", 1e-3 * event.beginNanoseconds},
        {"dur", 1e-3 * (event.endNanoseconds - event.beginNanoseconds)},
        {"pid", 0},
        {"tid", event.rank}};
    if (event.call != 0)
      object["args"] =
          llvm::json::Object{{"call", event.call}, {"bytes", event.bytes}};
    llvm::raw_string_ostream(text)
        << (text.empty() ? "" : ",\n") << llvm::json::Value(std::move(object));
  }
  return text;
}

static Error writeTrace(const EntrySignature &entry,
                        const std::vector<std::string> &texts) {
  return writeFile(pathOfEntry(traceFile, entry), "{\"traceEvents\":[\n" +
                                                      llvm::join(texts, ",\n") +
                                                      "\n]}\n");
}

/// After a run of ranks that are threads.
static Error finish(const Manifest &manifest, const EntrySignature &entry,
                    const Ranks &ranks, Progress &progress) {
  if (!traceFile.empty())
    if (Error error = writeTrace(entry, {traceText(ranks)}))
      return error;
  auto buffer = [&](int64_t rank, size_t index) {
    return ranks.result(rank, index);
  };
  auto results = writeResults(manifest, entry, buffer, pathOfEntry(out, entry),
                              std::nullopt, progress);
  if (!results)
    return results.takeError();
  if (Error error = publish(results->files))
    return error;
  progress.clear();
  printRun(manifest, entry, {ranks.seconds(), ranks.peakBytes()});
  for (const std::string &line : results->lines)
    llvm::outs() << line << "\n";
  return flushStandardOutput();
}

/// Gives this rank's file its name once every rank has written its own, and
/// takes the name away again if one of the others cannot do the same.
static Error publishTogether(const Processes &processes,
                             llvm::MutableArrayRef<OutputFile> files) {
  std::vector<double> everybody = {0};
  if (Error error = processes.maximum(everybody))
    return error;
  Publication publication(files);
  if (Error error = publication.publish())
    return error;
  if (Error error = processes.maximum(everybody))
    return error;
  publication.settle();
  return Error::success();
}

/// After a run of ranks that are processes, of which this is one: rank 0 prints
/// for all. A file of full tensors is rank 0's, of a file per rank each writes
/// its own.
static Error finishSeparate(const Manifest &manifest,
                            const EntrySignature &entry, const Ranks &ranks,
                            Progress &progress) {
  const int64_t rank = ranks.first();
  Processes processes(ranks.context(), rank, manifest.ranks, timeout);
  std::vector<double> numbers = ranks.seconds();
  numbers.push_back(ranks.peakBytes());
  if (Error error = processes.maximum(numbers))
    return error;
  int64_t peakBytes = numbers.back();
  numbers.pop_back();
  if (!traceFile.empty()) {
    auto texts = processes.gather("traces", traceText(ranks));
    if (!texts)
      return texts.takeError();
    if (rank == 0)
      if (Error error = writeTrace(entry, *texts))
        return error;
  }

  auto own = [&](int64_t, size_t index) { return ranks.result(rank, index); };
  std::vector<std::string> texts;
  std::string path = pathOfEntry(out, entry);
  if (isPerRank(path)) {
    auto results = writeResults(manifest, entry, own, path, rank, progress);
    if (!results)
      return results.takeError();
    auto all =
        processes.gather("result lines", llvm::join(results->lines, "\n"));
    if (!all)
      return all.takeError();
    if (Error error = publishTogether(processes, results->files))
      return error;
    texts = std::move(*all);
  } else {
    auto all = processes.results(entry, own);
    if (!all)
      return all.takeError();
    if (rank == 0) {
      auto buffer = [&](int64_t other, size_t index) {
        return all->find(other, index);
      };
      auto results =
          writeResults(manifest, entry, buffer, path, std::nullopt, progress);
      if (!results)
        return results.takeError();
      if (Error error = publish(results->files))
        return error;
      texts = std::move(results->lines);
    }
  }
  // Nobody leaves while another one may still fail: MPI takes the end of one
  // process for the end of all.
  std::vector<double> everybody = {0};
  if (Error error = processes.maximum(everybody))
    return error;
  if (rank != 0)
    return Error::success();
  progress.clear();
  printRun(manifest, entry, {numbers, peakBytes});
  for (const std::string &text : texts)
    if (!text.empty())
      llvm::outs() << text << "\n";
  return flushStandardOutput();
}

/// Everything that follows once the ranks exist.
static Error execute(const Manifest &manifest, const EntrySignature &entry,
                     fsdprtEntry function, const MadeUp &madeUp, Ranks &ranks,
                     Progress &progress) {
  SourceOptions files;
  for (const std::string &path : in)
    files.paths.push_back(pathOfEntry(path, entry));
  files.convert = convert;
  std::vector<std::string> notes;
  auto inputs = Inputs::open(entry, ranks.first(), ranks.count(),
                             std::move(files), madeUp, notes);
  if (!inputs)
    return inputs.takeError();
  if (ranks.first() == 0)
    for (const std::string &note : notes)
      llvm::errs() << "fsdp-run: note: " << printable(note) << "\n";
  // What goes wrong before or after names a file.
  if (Error error = ranks.run(function, *inputs, progress))
    return failure("entry '" + entry.name +
                   "': " + llvm::toString(std::move(error)));
  return ranks.separate() ? finishSeparate(manifest, entry, ranks, progress)
                          : finish(manifest, entry, ranks, progress);
}

static void printError(Error error) {
  llvm::errs() << "fsdp-run: error: "
               << printable(llvm::toString(std::move(error)),
                            /*isMessage=*/true)
               << "\n";
}

/// What all ranks have to be told alike, for they may be processes that
/// somebody has started one by one.
static std::vector<std::string> describeRun(const EntrySignature &entry) {
  auto all = [](StringRef option, const cl::list<std::string> &values) {
    std::string text;
    for (const std::string &value : values)
      text += (text.empty() ? "--" : " --") + option.str() + "=" + value;
    return text.empty() ? "no --" + option.str() : text;
  };
  return {"--entry=" + entry.name,
          fillSeed.getNumOccurrences() ? "--fill=" + std::to_string(fillSeed)
                                       : "no --fill",
          all("in", in),
          all("set", assignments),
          "--repeat=" + std::to_string(repeat),
          "--warmup=" + std::to_string(warmUp)};
}

/// One entry, on ranks of its own.
static Error runEntry(const Artefact &artefact, const Manifest &manifest,
                      const EntrySignature &entry, RunOptions options,
                      const MadeUp &madeUp, Progress &progress) {
  options.agreed = describeRun(entry);
  auto function = artefact.load(entry.name);
  if (!function)
    return function.takeError();
  auto ranks = Ranks::create(manifest, entry, options);
  if (!ranks)
    return ranks.takeError();
  // Ranks that are threads end with the process, others have to be told.
  auto tellOthers = [&](const std::string &sentence) {
    return !ranks->separate() || ranks->abort(sentence);
  };
  onInterrupt(tellOthers);
  auto removeAction = llvm::scope_exit([] { onInterrupt({}); });

  if (Error error =
          execute(manifest, entry, *function, madeUp, *ranks, progress)) {
    endIfInterrupted();
    progress.clear();
    std::string message = llvm::toString(std::move(error));
    std::string prefix = "entry '" + entry.name + "': ";
    if (entryNames.size() > 1 && !StringRef(message).starts_with(prefix))
      message = prefix + message;
    if (!ranks->separate() || ranks->abort(message))
      printError(failure(message));
    else
      // The end of this process would be the end of the one that speaks.
      sleep(1);
    // Threads of ranks may use all of this for ever.
    llvm::outs().flush();
    _exit(1);
  }
  return Error::success();
}

static Error run(Progress &progress) {
  RunOptions options;
  bool injectAbi = false;
  if (Error error = readOptions(options, injectAbi))
    return error;
  auto artefact = Artefact::read(artefactPath);
  if (!artefact)
    return artefact.takeError();
  if (Error error = checkArtefact(*artefact, injectAbi))
    return error;
  if (list) {
    llvm::outs() << artefact->manifest << "\n";
    return flushStandardOutput();
  }
  auto manifest = Manifest::parse(artefact->manifest);
  if (!manifest)
    return manifest.takeError();
  if (Error error = checkManifest(*manifest, options))
    return error;
  auto entries = chooseEntries(*manifest);
  if (!entries)
    return entries.takeError();
  auto constants = Constants::parse(assignments);
  if (!constants)
    return constants.takeError();
  if (Error error = constants->check(*entries))
    return error;
  MadeUp madeUp{std::move(*constants), std::nullopt};
  if (fillSeed.getNumOccurrences())
    madeUp.seed = fillSeed;
  for (const EntrySignature *entry : *entries)
    if (Error error =
            runEntry(*artefact, *manifest, *entry, options, madeUp, progress))
      return error;
  return Error::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  handleInterrupts("fsdp-run");
  installOutOfMemoryHandler("fsdp-run");
  cl::HideUnrelatedOptions(category);
  setVersionPrinter("fsdp-run");
  cl::ParseCommandLineOptions(
      argc, argv,
      "runs entries of an artefact of fsdp-compile on N ranks\n\n"
      "Prints ranks, time and peak memory, then one line per result. What "
      "goes\n"
      "wrong is one sentence on standard error and an exit code other than "
      "0.\n");
  Progress progress;
  Error error = run(progress);
  endIfInterrupted();
  progress.clear();
  if (!error)
    return 0;
  printError(std::move(error));
  return 1;
}
