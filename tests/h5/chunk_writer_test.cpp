#include "libalpa/h5/chunk_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <cstring>

#include "libalpa/base/error.h"
#include "libalpa/h5/descriptor.h"
#include "tests/h5/damage.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ChunksInAFile : public ::testing::Test {
 protected:
  Descriptor opened(int flags) const { return Descriptor(open(path_.c_str(), flags | O_CLOEXEC, 0666)); }

  /// `text`, and room for its checksum.
  static ChunkBytes chunk(const std::string& text) {
    const std::size_t bytes = text.size() + checksum_bytes;
    ChunkBytes made{std::make_unique<char[]>(bytes), static_cast<std::int64_t>(bytes)};
    std::memcpy(made.bytes.get(), text.data(), text.size());
    return made;
  }

  static std::string with_checksum(const std::string& text) {
    const std::uint32_t sum = fletcher32(text);
    std::string bytes = text;
    for (int i = 0; i < checksum_bytes; ++i) bytes.push_back(static_cast<char>(sum >> (8 * i)));
    return bytes;
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "chunks";
};

TEST_F(ChunksInAFile, EndInTheirChecksums) {
  ChunkWriter writer(opened(O_WRONLY | O_CREAT), path_);
  writer.write(8, chunk("beta"));
  writer.write(0, chunk("alfa"));
  writer.finish();
  EXPECT_EQ(bytes_of_file(path_), with_checksum("alfa") + with_checksum("beta"));
}

TEST_F(ChunksInAFile, WrittenInTheBackgroundAreTheSame) {
  BackgroundWriter writer(ChunkWriter(opened(O_WRONLY | O_CREAT), path_));
  for (int i = 0; i < 100; ++i) writer.add(8 * i, chunk("c" + std::to_string(100 + i)));
  EXPECT_FALSE(writer.is_done()) << "more may come";
  writer.close();
  while (!writer.wait_for_progress()) continue;
  writer.check();
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += with_checksum("c" + std::to_string(100 + i));
  EXPECT_EQ(bytes_of_file(path_), expected);
}

TEST_F(ChunksInAFile, ThatCannotBeWrittenInTheBackgroundAreReported) {
  opened(O_WRONLY | O_CREAT);
  BackgroundWriter writer(ChunkWriter(opened(O_RDONLY), path_));
  writer.add(0, chunk("alfa"));
  writer.close();
  while (!writer.wait_for_progress()) continue;
  EXPECT_TRUE(writer.is_done());
  EXPECT_THAT([&] { writer.check(); }, ThrowsMessage<Error>(HasSubstr("cannot write '" + path_.string())));
  writer.add(0, chunk("beta"));  // goes nowhere
}

TEST_F(ChunksInAFile, MayBeGivenUpInTheBackground) {
  BackgroundWriter writer(ChunkWriter(opened(O_WRONLY | O_CREAT), path_));
  writer.add(0, chunk("alfa"));
}

}  // namespace
}  // namespace alpa
