//===- OutputFile.h - files that are written whole or not at all -*- C++
//-*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every file of every tool is written here. The bytes go to a file beside the
// one that was named, onto the disk, and only then does that file take the
// name: whoever reads the name sees what was there before, or all of what is
// new, whether a disk was full, the program was interrupted or the machine lost
// its power. Two programs that write one name do not mix; the last one wins.
//
// A link is followed, so that it stays one. The new file has the permissions of
// the old one. What is no regular file (a pipe, a terminal, /dev/null) and
// standard output, "-", get the bytes one after the other when all are there.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_SUPPORT_OUTPUTFILE_H
#define FSDP_SUPPORT_OUTPUTFILE_H

#include "fsdp/Support/Interrupt.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace mlir::fsdp {

class OutputFile {
public:
  /// `mode` is that of a file that does not exist yet, less the umask.
  static llvm::Expected<OutputFile> create(llvm::StringRef path,
                                           unsigned mode = 0666);
  OutputFile(OutputFile &&other);
  OutputFile &operator=(OutputFile &&) = delete;

  /// Leaves no trace of a file that was not published.
  ~OutputFile();

  /// The name that was asked for.
  const std::string &getPath() const { return path; }

  /// Writes at a place. From any thread.
  llvm::Error write(int64_t offset, const void *data, int64_t bytes) const;

  /// Brings what was written to the disk; nothing can be written any more. A
  /// second call does nothing.
  llvm::Error finish();

private:
  friend class Publication;
  OutputFile(llvm::StringRef path) : path(path) {}
  llvm::Error lastError(llvm::StringRef what) const;
  llvm::Error openBeside(unsigned mode);
  llvm::Error openStream();
  llvm::Error publish(bool keepOld);
  llvm::Error copyToStream();
  void revert();
  void settle();

  std::string path;
  std::string target;    ///< `path` without links
  std::string temporary; ///< the file beside it, empty if there is none
  std::string old;       ///< another name of what `target` was, or empty
  int descriptor = -1;
  bool isStream = false;
  bool published = false;
  bool isNew = false; ///< there was no file of this name
};

/// Gives finished files their names: all of them, or none if one cannot have
/// its name, as far as the file system lets old files be brought back. Until
/// settle() has been called, the destructor takes everything back. From the
/// first name on no interrupt ends the program before that.
class Publication {
public:
  explicit Publication(llvm::MutableArrayRef<OutputFile> files);
  ~Publication();

  llvm::Error publish();
  void settle();

private:
  std::optional<Uninterrupted> section;
  llvm::MutableArrayRef<OutputFile> files;
};

/// Finishes and publishes `files`.
llvm::Error publish(llvm::MutableArrayRef<OutputFile> files);

/// Writes a file of these bytes.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef bytes,
                      unsigned mode = 0666);

/// Sends what llvm::outs() still holds, and reports what failed. Without it
/// LLVM ends the program in words of its own.
llvm::Error flushStandardOutput();

} // namespace mlir::fsdp

#endif // FSDP_SUPPORT_OUTPUTFILE_H
