#include "braid/base/file.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "braid/base/temporary_folder.h"

#include "base/error_text.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::ptrdiff_t entries_of(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()),
                       std::filesystem::directory_iterator());
}

TEST(File, WritesAndReadsBack) {
  const TemporaryFolder folder;
  std::string content = "a\0b\r\n\xff";
  content += std::string(300000, 'x');
  write_file(folder / "f", content);
  EXPECT_EQ(read_file(folder / "f"), content);
  write_file(folder / "f", "");
  EXPECT_EQ(read_file(folder / "f"), "");
  EXPECT_EQ(entries_of(folder), 1);
}

TEST(File, NewFilesFollowTheUmask) {
  const TemporaryFolder folder;
  const mode_t old = ::umask(027);
  write_file(folder / "f", "x");
  ::umask(old);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST(File, FailureKeepsTheOldContentAndLeavesNothingBehind) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { write_file(folder / "none/f", "x"); }),
              StartsWith((folder / "none/f") + ": cannot write: No such file"));
  EXPECT_THAT(error_text([&] { write_file(folder.path(), "x"); }), HasSubstr("directory"));
  EXPECT_EQ(entries_of(folder), 0);
}

TEST(File, KeepsSymbolicLinks) {
  const TemporaryFolder folder;
  write_file(folder / "target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "target"), "new");
  EXPECT_EQ(entries_of(folder), 2);
}

TEST(File, WritesToDevicesInPlace) {
  write_file("/dev/null", "x");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(File, ReportsAFullDevice) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  EXPECT_THAT(error_text([] { write_file("/dev/full", "x"); }), HasSubstr("No space left"));
}

TEST(File, ReadsPipes) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string content(200000, 'y');
  std::thread writer([&] { std::ofstream(pipe) << content; });
  const std::string read = read_file(pipe);
  writer.join();
  EXPECT_EQ(read, content);
}

TEST(File, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { read_file(folder / "none"); }),
              StartsWith((folder / "none") + ": cannot open: No such file"));
  EXPECT_THAT(error_text([&] { read_file(folder.path()); }), HasSubstr("directory"));
  EXPECT_THAT(error_text([&] { read_file("/dev/zero"); }), HasSubstr("is a device"));
  EXPECT_THAT(error_text([] { read_file(""); }), HasSubstr("the file to read is empty"));
  EXPECT_THAT(error_text([] { write_file("", "x"); }), HasSubstr("the file to write is empty"));
}

TEST(File, DashIsStandardOutput) {
  ::testing::internal::CaptureStdout();
  write_file("-", "to the terminal\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "to the terminal\n");
}

}  // namespace
}  // namespace braid
