//===- OutputFile.cpp - files that are written whole or not at all --------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Support/OutputFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir::fsdp;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// Calls a function of the system until no signal has cut it short.
template <typename Function>
static auto retry(Function function) {
  decltype(function()) result;
  do
    result = function();
  while (result < 0 && errno == EINTR);
  return result;
}

Error OutputFile::lastError(StringRef what) const {
  return llvm::createStringError(path + ": " + what + ": " +
                                 std::strerror(errno));
}

/// The file that `path` leads to, which need not exist; nothing and errno if
/// its links go in a circle.
static std::optional<std::string> followLinks(StringRef path) {
  llvm::SmallString<256> result(path);
  for (int links = 0; links < 40; ++links) {
    char target[4096];
    ssize_t length = readlink(result.c_str(), target, sizeof(target));
    if (length < 0) // no link
      return result.str().str();
    StringRef next(target, length);
    if (!llvm::sys::path::is_absolute(next))
      llvm::sys::path::remove_filename(result);
    else
      result.clear();
    llvm::sys::path::append(result, next);
  }
  errno = ELOOP;
  return std::nullopt;
}

/// Makes a file of a new name in the folder of `target` that an interrupt
/// removes.
static int createBeside(StringRef target, std::string &name) {
  StringRef folder = llvm::sys::path::parent_path(target);
  // Names end at 255 bytes.
  StringRef last = llvm::sys::path::filename(target).take_front(200);
  llvm::SmallString<256> model(folder);
  llvm::sys::path::append(model, "." + last + ".%%%%%%%%.fsdp-tmp");
  int descriptor = -1;
  llvm::SmallString<256> made;
  if (std::error_code code = llvm::sys::fs::createUniqueFile(
          model, descriptor, made, llvm::sys::fs::OF_None,
          llvm::sys::fs::owner_read | llvm::sys::fs::owner_write)) {
    errno = code.value();
    return -1;
  }
  name = made.str().str();
  llvm::sys::RemoveFileOnSignal(name);
  return descriptor;
}

static void removeTemporary(std::string &name) {
  if (name.empty())
    return;
  unlink(name.c_str());
  llvm::sys::DontRemoveFileOnSignal(name);
  name.clear();
}

Expected<OutputFile> OutputFile::create(StringRef path, unsigned mode) {
  OutputFile file(path);
  struct stat named, output;
  bool exists = stat(file.path.c_str(), &named) == 0;
  // A program that is told to write /dev/stdout must not replace the file to
  // which its output goes.
  bool isOutput =
      path == "-" ||
      (exists && fstat(STDOUT_FILENO, &output) == 0 &&
       named.st_dev == output.st_dev && named.st_ino == output.st_ino);
  file.isStream = isOutput || (exists && !S_ISREG(named.st_mode) &&
                               !S_ISDIR(named.st_mode));
  if (isOutput)
    file.target = "-";
  Error error = file.isStream ? file.openStream() : file.openBeside(mode);
  if (error)
    return error;
  return file;
}

Error OutputFile::openBeside(unsigned mode) {
  auto followed = followLinks(path);
  if (!followed)
    return lastError("cannot create");
  target = *followed;
  struct stat status;
  bool exists = stat(target.c_str(), &status) == 0;
  // What rename would find out too late, or not at all.
  int reason = 0;
  if (exists && S_ISDIR(status.st_mode))
    reason = EISDIR;
  else if (!exists && (target.empty() || target.back() == '/'))
    reason = ENOENT;
  else if (exists && access(target.c_str(), W_OK) != 0)
    reason = errno;
  errno = reason;
  if (reason != 0)
    return lastError("cannot create");

  descriptor = createBeside(target, temporary);
  if (descriptor < 0)
    return lastError("cannot create");
  if (exists) {
    // Root may write a file that stays another's.
    if (status.st_uid != geteuid() || status.st_gid != getegid())
      (void)!fchown(descriptor, status.st_uid, status.st_gid);
    fchmod(descriptor, status.st_mode & 07777);
    return Error::success();
  }
  mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, mode & ~mask);
  return Error::success();
}

/// Collects the bytes in a file without a name.
Error OutputFile::openStream() {
  llvm::SmallString<128> folder;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
  llvm::sys::path::append(folder, "fsdp");
  descriptor = createBeside(folder, temporary);
  if (descriptor < 0)
    return lastError("cannot create a temporary file for it");
  removeTemporary(temporary);
  return Error::success();
}

OutputFile::OutputFile(OutputFile &&other)
    : path(std::move(other.path)), target(std::move(other.target)),
      temporary(std::move(other.temporary)), old(std::move(other.old)),
      descriptor(other.descriptor), isStream(other.isStream),
      published(other.published), isNew(other.isNew) {
  other.descriptor = -1;
  other.temporary.clear();
  other.old.clear();
}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  removeTemporary(temporary);
  removeTemporary(old);
}

Error OutputFile::write(int64_t offset, const void *data, int64_t bytes) const {
  for (const char *at = static_cast<const char *>(data); bytes > 0;) {
    ssize_t done = retry([&] { return pwrite(descriptor, at, bytes, offset); });
    if (done < 0)
      return lastError("cannot write");
    at += done;
    offset += done;
    bytes -= done;
  }
  return Error::success();
}

Error OutputFile::finish() {
  if (isStream || descriptor < 0)
    return Error::success();
  // Some file systems have nothing to bring anywhere.
  bool failed = retry([&] { return fsync(descriptor); }) != 0 &&
                errno != EINVAL && errno != ENOTSUP;
  int reason = errno;
  if (::close(descriptor) != 0 && !failed) {
    failed = true;
    reason = errno;
  }
  descriptor = -1;
  errno = reason;
  return failed ? lastError("cannot write") : Error::success();
}

Error OutputFile::copyToStream() {
  int stream = target == "-" ? dup(STDOUT_FILENO) : retry([&] {
    return open(path.c_str(), O_WRONLY | O_CLOEXEC);
  });
  if (stream < 0)
    return lastError("cannot write");
  if (target == "-")
    llvm::outs().flush();
  std::vector<char> buffer(1 << 18);
  for (int64_t offset = 0;;) {
    ssize_t bytes = retry([&] {
      return pread(descriptor, buffer.data(), buffer.size(), offset);
    });
    bool failed = bytes < 0;
    for (ssize_t sent = 0; sent < bytes && !failed;) {
      ssize_t done = retry(
          [&] { return ::write(stream, buffer.data() + sent, bytes - sent); });
      failed = done < 0;
      sent += done;
    }
    if (failed || bytes == 0) {
      Error error = failed ? lastError("cannot write") : Error::success();
      ::close(stream);
      return error;
    }
    offset += bytes;
  }
}

Error OutputFile::publish(bool keepOld) {
  if (isStream)
    return copyToStream();
  if (keepOld) {
    old = temporary + ".old";
    if (link(target.c_str(), old.c_str()) == 0) {
      llvm::sys::RemoveFileOnSignal(old);
    } else {
      isNew = errno == ENOENT;
      old.clear();
    }
  }
  if (rename(temporary.c_str(), target.c_str()) != 0)
    return lastError("cannot write");
  llvm::sys::DontRemoveFileOnSignal(temporary);
  temporary.clear();
  published = true;
  return Error::success();
}

void OutputFile::revert() {
  if (!published)
    return;
  published = false;
  if (old.empty()) {
    // Where a file system knows no links the new file is all that there is.
    if (isNew)
      unlink(target.c_str());
  } else if (rename(old.c_str(), target.c_str()) == 0) {
    llvm::sys::DontRemoveFileOnSignal(old);
    old.clear();
  }
}

void OutputFile::settle() {
  removeTemporary(old);
  if (!published)
    return;
  published = false;
  // The name, too, has to reach the disk. That it did not is nothing that a
  // program could act upon.
  StringRef folder = llvm::sys::path::parent_path(target);
  int directory = open(folder.empty() ? "." : folder.str().c_str(),
                       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return;
  fsync(directory);
  ::close(directory);
}

//===----------------------------------------------------------------------===//
// Publication
//===----------------------------------------------------------------------===//

Publication::Publication(llvm::MutableArrayRef<OutputFile> files)
    : files(files) {}

Publication::~Publication() {
  for (OutputFile &file : llvm::reverse(files))
    file.revert();
}

Error Publication::publish() {
  // What cannot be taken back comes first: then nothing has to be if it fails.
  // It may also take for ever, if nobody empties a pipe.
  for (OutputFile &file : files)
    if (file.isStream)
      if (Error error = file.publish(/*keepOld=*/false))
        return error;
  section.emplace();
  for (OutputFile &file : files)
    if (!file.isStream)
      if (Error error = file.publish(/*keepOld=*/files.size() > 1))
        return error;
  return Error::success();
}

void Publication::settle() {
  for (OutputFile &file : files)
    file.settle();
}

Error mlir::fsdp::publish(llvm::MutableArrayRef<OutputFile> files) {
  for (OutputFile &file : files)
    if (Error error = file.finish())
      return error;
  Publication publication(files);
  if (Error error = publication.publish())
    return error;
  publication.settle();
  return Error::success();
}

Error mlir::fsdp::writeFile(StringRef path, StringRef bytes, unsigned mode) {
  auto file = OutputFile::create(path, mode);
  if (!file)
    return file.takeError();
  if (Error error = file->write(0, bytes.data(), bytes.size()))
    return error;
  return publish(*file);
}

Error mlir::fsdp::flushStandardOutput() {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return Error::success();
  std::string why = llvm::outs().error().message();
  llvm::outs().clear_error();
  return llvm::createStringError("standard output: cannot write: " + why);
}
