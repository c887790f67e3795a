//===- OutputFileTest.cpp - files that are written whole or not at all ----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Several files at once; one file is tested with the tools (writing.test).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Support/OutputFile.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace mlir::fsdp;
namespace fs = std::filesystem;

namespace {

class OutputFileTest : public testing::Test {
protected:
  OutputFileTest() {
    std::string name = (fs::temp_directory_path() / "fsdp-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~OutputFileTest() override { fs::remove_all(folder); }

  std::string path(const char *name) const { return (folder / name).string(); }

  void put(const char *name, const char *text) const {
    std::ofstream(path(name)) << text;
  }

  std::string get(const char *name) const {
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }

  OutputFile create(const char *name, llvm::StringRef text) const {
    OutputFile file = llvm::cantFail(OutputFile::create(path(name)));
    llvm::cantFail(file.write(0, text.data(), text.size()));
    return file;
  }

  std::vector<OutputFile> createAll(llvm::ArrayRef<const char *> names) const {
    std::vector<OutputFile> files;
    for (const char *name : names)
      files.push_back(create(name, std::string("new ") + name));
    return files;
  }

  size_t entries() const {
    return std::distance(fs::directory_iterator(folder), {});
  }

  fs::path folder;
};

std::string textOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

TEST_F(OutputFileTest, LeavesNothingUnlessPublished) {
  put("old", "old");
  {
    OutputFile old = create("old", "new"), fresh = create("fresh", "new");
    EXPECT_EQ(get("old"), "old");
    EXPECT_FALSE(fs::exists(path("fresh")));
    EXPECT_EQ(textOf(old.finish()), "");
  }
  EXPECT_EQ(get("old"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputFileTest, PublishesAll) {
  put("a", "old");
  auto files = createAll({"a", "b"});
  EXPECT_EQ(textOf(publish(files)), "");
  EXPECT_EQ(get("a"), "new a");
  EXPECT_EQ(get("b"), "new b");
  files.clear();
  EXPECT_EQ(entries(), 2u);
}

TEST_F(OutputFileTest, PublishesNoneIfOneCannotBe) {
  put("a", "old");
  auto files = createAll({"a", "b", "c"});
  fs::create_directory(path("c")); // while the files were written
  EXPECT_EQ(textOf(publish(files)),
            path("c") + ": cannot write: Is a directory");
  files.clear();
  EXPECT_EQ(get("a"), "old");
  EXPECT_FALSE(fs::exists(path("b")));
  EXPECT_EQ(entries(), 2u);
}

TEST_F(OutputFileTest, TakesBackWhatIsNotSettled) {
  put("a", "old");
  auto files = createAll({"a", "b"});
  {
    Publication publication(files);
    EXPECT_EQ(textOf(publication.publish()), "");
    EXPECT_EQ(get("a"), "new a");
    EXPECT_EQ(get("b"), "new b");
  }
  EXPECT_EQ(get("a"), "old");
  EXPECT_FALSE(fs::exists(path("b")));
}

TEST_F(OutputFileTest, LongNamesHaveRoomBesideThem) {
  std::string name(255, 'x');
  EXPECT_EQ(textOf(writeFile(path(name.c_str()), "text")), "");
  EXPECT_EQ(get(name.c_str()), "text");
}

} // namespace
