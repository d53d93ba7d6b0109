#include "libalpa/tokenizer/tokenizer.h"

#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "libalpa/h5/rows_writer.h"
#include "tests/h5/temporary_folder.h"
#include "tests/tokenizer/stored_cases.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class OpenTokenizer : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

 private:
  TemporaryFolder folder_;
};

TEST_F(OpenTokenizer, OfBytesHasThemForIds) {
  const auto tokenizer = open_tokenizer("bytes");
  EXPECT_THAT(tokenizer->encode("a\xff"), ElementsAre(97, 255));
  EXPECT_EQ(tokenizer->decode({{104, 105, 0}}), std::string("hi\0", 3));
  EXPECT_EQ(tokenizer->vocabulary(), 256);
  EXPECT_EQ(tokenizer->end_of_text(), std::nullopt);
  EXPECT_THAT([&] { tokenizer->decode({{256}}); }, ThrowsMessage<Error>(HasSubstr("token 256 is no byte")));
}

TEST_F(OpenTokenizer, KnowsAFileByItsContent) {
  const auto tokenizer = open_tokenizer(write("any name", " \n" + stored_file("gpt2.json")));
  EXPECT_EQ(tokenizer->vocabulary(), 1300);
}

TEST_F(OpenTokenizer, FindsTheOneThatAnHdf5FileCarries) {
  const std::string content = stored_file("llama3.json");
  H5RowsWriter file(path("data.h5"), "alpa-data", "1.0");
  file.append(file.declare("/tokenizer", RowsType::u8, {std::ssize(content)}), std::ssize(content),
              content.data());
  file.publish();
  EXPECT_EQ(read_tokenizer_file(path("data.h5")).content, content);
  EXPECT_EQ(open_tokenizer(path("data.h5"))->vocabulary(), 1204);
}

TEST_F(OpenTokenizer, RefusesWhatIsNone) {
  H5Writer file(path("tokens.h5"), "alpa-data", "1.0");
  file.column("/tokens", std::vector<std::int64_t>{5}, "1");
  file.publish();
  std::filesystem::create_directory(path("folder"));
  const auto refuses = [](const std::string& name, const std::string& says) {
    EXPECT_THAT([&] { open_tokenizer(name); }, ThrowsMessage<Error>(AllOf(HasSubstr(name), HasSubstr(says))));
  };
  refuses(path("tokens.h5"), "it has no /tokenizer");
  refuses(path("nowhere.json"), "cannot be read: No such file");
  refuses(path("folder"), "is no regular file");
  refuses(write("empty", ""), "is empty");
  refuses(write("vocab.txt", "[PAD]\n[UNK]\n"), "is no tokenizer that is known");
  refuses(write("noise", "\xff\x05\n\xff noise"), "is no tokenizer that is known");
  refuses(write("large.json", "{"), "it is not JSON");
  std::filesystem::resize_file(path("large.json"), 1 << 30);
  refuses(path("large.json"), "has 1073741824 bytes, and 64 MiB is the most");
}

}  // namespace
}  // namespace alpa
