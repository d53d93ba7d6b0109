// Strings of variable length, as h5py writes them, in whole and in damaged files.
#include <gmock/gmock.h>
#include <hdf5.h>

#include <functional>

#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "tests/h5/damage.h"
#include "tests/h5/temporary_folder.h"
#include "tests/h5/variable_string.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// As h5py writes str; one that was never written where `text` is null.
std::function<void(hid_t)> with_text(const char* name, const char* text) {
  return [=](hid_t f) {
    const hid_t type = variable_string(), space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(f, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (text) H5Awrite(attribute, type, &text);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
  };
}

class VariableLength : public ::testing::Test {
 protected:
  /// A file of profiles, whose format `add` has to say.
  void make(const std::function<void(hid_t)>& add) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110);
    H5Pset_userblock(creation, user_block_);
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, creation, access);
    ASSERT_GE(file, 0);
    with_text("format_version", "1.0")(file);
    add(file);
    ASSERT_GE(H5Fclose(file), 0);
    H5Pclose(creation);
    H5Pclose(access);
  }

  void open() const { H5Reader(path_, "alpa-profile", "1.0", 1 << 20); }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "profile.h5";
  hsize_t user_block_ = 0;  ///< what stands before HDF5's part of the file
};

TEST_F(VariableLength, IsReadWhereverTheTextLies) {
  const std::string novel(100'000, 'x');
  for (const hsize_t user_block : {0, 512}) {
    user_block_ = user_block;
    make([&](hid_t f) {
      with_text("format", "alpa-profile")(f);
      with_text("note", "mesuré à Genève")(f);
      with_text("novel", novel.c_str())(f);
      with_text("empty", "")(f);
      with_text("unwritten", nullptr)(f);
    });
    const H5Reader file(path_, "alpa-profile", "1.0");
    EXPECT_EQ(file.text_attribute("/", "format"), "alpa-profile");
    EXPECT_EQ(file.text_attribute("/", "note"), "mesuré à Genève");
    EXPECT_EQ(file.text_attribute("/", "novel"), novel);
    EXPECT_EQ(file.text_attribute("/", "empty"), "");
    EXPECT_EQ(file.text_attribute("/", "unwritten"), "");
  }
  user_block_ = 0;
  make(with_text("format", "alpa-plan"));
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("found an 'alpa-plan' file")));
  make(with_text("format", nullptr));
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("found an HDF5 file without a format")));
}

// HDF5's own reader of these reads past their heap's ends, which AddressSanitizer reports.
TEST_F(VariableLength, IsRefusedWhereItIsDamaged) {
  make([](hid_t f) {
    with_text("format", "alpa-profile")(f);
    with_text("note", "another one on the same heap")(f);
  });
  const std::string whole = bytes_of_file(path_);
  int read = 0, refused = 0;
  for (std::int64_t byte = 0; byte < std::ssize(whole); ++byte) {
    // Most of the heap is room that is left.
    if (whole.find_first_not_of('\0', static_cast<std::size_t>(byte)) > static_cast<std::size_t>(byte) + 16)
      continue;
    const FlippedBit flipped(path_, byte, static_cast<int>(byte % 8));
    try {
      H5Reader(path_, "alpa-profile", "1.0").text_attribute("/", "note");
      ++read;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      ++refused;
    }
  }
  EXPECT_GT(read, 10);
  EXPECT_GT(refused, 100);
  // A heap that claims more than the file has.
  const auto heap = static_cast<std::int64_t>(whole.find("GCOL"));
  for (const int bit : {5, 7}) {
    const FlippedBit larger(path_, heap + 13, bit);
    EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("attribute 'format' cannot be read")));
  }
}

}  // namespace
}  // namespace alpa
