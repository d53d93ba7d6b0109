// Files that a stranger could send: each is refused before any of its data is read.
#include <gmock/gmock.h>
#include <hdf5.h>
#include <sys/stat.h>

#include <functional>

#include "libalpa/base/error.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/h5/file.h"
#include "libalpa/h5/tensor_file.h"
#include "tests/h5/damage.h"
#include "tests/h5/temporary_folder.h"
#include "tests/h5/variable_string.h"

namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::Throws;
using ::testing::ThrowsMessage;

void text_attribute(hid_t object, const char* name, const std::string& value) {
  const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, value.size());
  const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, value.data());
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
}

/// A dataset "/seconds", by default of 4 doubles that are written.
struct DatasetSettings {
  std::vector<hsize_t> extent{4};
  hid_t type = H5T_IEEE_F64LE;
  std::function<void(hid_t creation)> set = [](hid_t) {};
};

void add_dataset(hid_t file, const DatasetSettings& settings, const char* name = "seconds") {
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  settings.set(creation);
  const hid_t space =
      H5Screate_simple(static_cast<int>(settings.extent.size()), settings.extent.data(), nullptr);
  const hid_t dataset = H5Dcreate2(file, name, settings.type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const std::vector<double> values{1, 2, 3, 4};
  if (settings.extent == std::vector<hsize_t>{4} && H5Tget_class(settings.type) == H5T_FLOAT)
    H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(creation);
}

std::function<void(hid_t)> chunked(std::vector<hsize_t> chunk, bool deflated = false) {
  return [=](hid_t creation) {
    H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
    if (deflated) H5Pset_deflate(creation, 1);
  };
}

// A filter of our own, number 300, that changes nothing.
size_t unchanged(unsigned, size_t, const unsigned*, size_t bytes, size_t*, void**) { return bytes; }

void foreign_filter(hid_t creation) {
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, 300, 1, 1, "foreign", nullptr, nullptr, unchanged};
  H5Zregister(&filter);
  chunked({4})(creation);
  H5Pset_filter(creation, 300, 0, 0, nullptr);
}

hid_t compound_type() {
  const hid_t type = H5Tcreate(H5T_COMPOUND, 16);
  H5Tinsert(type, "a", 0, H5T_NATIVE_DOUBLE);
  H5Tinsert(type, "b", 8, H5T_NATIVE_DOUBLE);
  return type;
}

hid_t odd_float() {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_precision(type, 16);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 16);
  return type;
}

hid_t padded_integer() {
  const hid_t type = H5Tcopy(H5T_STD_I32LE);
  H5Tset_precision(type, 20);
  return type;
}

void deep_groups(hid_t file) {
  std::string path;
  for (int depth = 0; depth < 40; ++depth)
    H5Gclose(H5Gcreate2(file, (path += "/g").c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

void cycle(hid_t file) {
  H5Gclose(H5Gcreate2(file, "/a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Lcreate_hard(file, "/", file, "/a/up", H5P_DEFAULT, H5P_DEFAULT);
}

struct Hostile {
  const char* name;
  std::function<void(hid_t file)> make;
  const char* refusal;
};

const Hostile hostiles[] = {
    {"external link",
     [](hid_t f) { H5Lcreate_external("/etc/other.h5", "/", f, "out", H5P_DEFAULT, H5P_DEFAULT); },
     "holds a link into another file, 'out'"},
    {"soft link", [](hid_t f) { H5Lcreate_soft("/format", f, "soft", H5P_DEFAULT, H5P_DEFAULT); },
     "holds a soft link, 'soft'"},
    {"external storage",
     [](hid_t f) {
       add_dataset(f, {{4}, H5T_IEEE_F64LE, [](hid_t c) { H5Pset_external(c, "/etc/passwd", 0, 32); }});
     },
     "'/seconds' keeps its data in another file"},
    {"virtual dataset",
     [](hid_t f) {
       add_dataset(f, {{4}, H5T_IEEE_F64LE, [](hid_t c) {
                         const hsize_t extent = 4;
                         const hid_t space = H5Screate_simple(1, &extent, nullptr);
                         H5Pset_virtual(c, space, "/etc/passwd", "/x", space);
                         H5Sclose(space);
                       }});
     },
     "'/seconds' is a virtual dataset"},
    {"8 TB in a contiguous dataset", [](hid_t f) { add_dataset(f, {{1ull << 40}}); },
     "claims 8796093022208 bytes"},
    {"8 TB in chunks",
     [](hid_t f) {
       add_dataset(f, {{1ull << 40}, H5T_IEEE_F64LE, chunked({1024})});
     },
     "claims 8796093022208 bytes"},
    {"8 TB deflated",
     [](hid_t f) {
       add_dataset(f, {{1ull << 40}, H5T_IEEE_F64LE, chunked({1024}, true)});
     },
     "claims 8796093022208 bytes"},
    {"more bytes than 64 bits count",
     [](hid_t f) {
       add_dataset(f, {{1ull << 40, 1ull << 40}, H5T_IEEE_F64LE, chunked({1, 1024})});
     },
     "claims 9223372036854775807 bytes"},
    {"no elements of an overflowing shape",
     [](hid_t f) {
       add_dataset(f, {{1ull << 40, 0, 1ull << 40}});
     },
     "claims 9223372036854775807 bytes"},
    {"more than the reader accepts",
     [](hid_t f) {
       add_dataset(f, {{1 << 18}, H5T_IEEE_F64LE, chunked({1 << 18}, true)});
     },
     "claims 2097152 bytes"},
    {"unknown filter",
     [](hid_t f) {
       add_dataset(f, {{4}, H5T_IEEE_F64LE, foreign_filter});
     },
     "'/seconds' uses filter 300"},
    {"compound",
     [](hid_t f) {
       add_dataset(f, {{4}, compound_type()});
     },
     "'/seconds' has a type other than"},
    {"variable-length strings",
     [](hid_t f) {
       add_dataset(f, {{4}, variable_string()});
     },
     "has variable-length strings"},
    {"variable-length lists",
     [](hid_t f) {
       add_dataset(f, {{4}, H5Tvlen_create(H5T_NATIVE_INT)});
     },
     "has a type other than"},
    {"references",
     [](hid_t f) {
       add_dataset(f, {{4}, H5T_STD_REF_OBJ});
     },
     "has a type other than"},
    {"opaque",
     [](hid_t f) {
       add_dataset(f, {{4}, H5Tcreate(H5T_OPAQUE, 8)});
     },
     "has a type other than"},
    {"half precision with another bias",
     [](hid_t f) {
       add_dataset(f, {{4}, odd_float()});
     },
     "has a float type that is neither"},
    {"padded integers",
     [](hid_t f) {
       add_dataset(f, {{4}, padded_integer()});
     },
     "has integers with padding bits"},
    {"compound attribute",
     [](hid_t f) {
       const hid_t space = H5Screate(H5S_SCALAR);
       H5Aclose(H5Acreate2(f, "odd", compound_type(), space, H5P_DEFAULT, H5P_DEFAULT));
       H5Sclose(space);
     },
     "'/ attribute odd' has a type other than"},
    {"huge attribute",
     [](hid_t f) {
       const hsize_t extent = 1 << 21;
       const hid_t space = H5Screate_simple(1, &extent, nullptr);
       H5Aclose(H5Acreate2(f, "huge", H5T_STD_I8LE, space, H5P_DEFAULT, H5P_DEFAULT));
       H5Sclose(space);
     },
     "has a huge attribute 'huge'"},
    {"no extent",
     [](hid_t f) {
       const hid_t space = H5Screate(H5S_NULL);
       H5Dclose(H5Dcreate2(f, "seconds", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
     },
     "'/seconds' has no extent"},
    {"cycle of groups", cycle, "is an object that has another path too, or a cycle"},
    {"two paths to one dataset",
     [](hid_t f) {
       add_dataset(f, {});
       H5Lcreate_hard(f, "/seconds", f, "/twin", H5P_DEFAULT, H5P_DEFAULT);
     },
     "'/twin' is an object that has another path too"},
    {"deep groups", deep_groups, "lies deeper than 32 groups"},
};

class HostileFile : public ::testing::Test {
 protected:
  void make(const std::function<void(hid_t)>& add, const char* format = "alpa-profile",
            const char* version = "1.0", H5F_libver_t oldest = H5F_LIBVER_V18) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, oldest, H5F_LIBVER_V110);
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    ASSERT_GE(file, 0);
    if (format) text_attribute(file, "format", format);
    if (version) text_attribute(file, "format_version", version);
    add(file);
    ASSERT_GE(H5Fclose(file), 0);
    H5Pclose(access);
  }

  void open() const { H5Reader(path_, "alpa-profile", "1.0", 1 << 20); }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "profile.h5";
};

TEST_F(HostileFile, IsRefusedNamingFileAndFault) {
  for (const Hostile& hostile : hostiles) {
    make(hostile.make);
    EXPECT_THAT([&] { open(); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr(path_.string()), HasSubstr(hostile.refusal), HasSubstr("\n  try: "))))
        << hostile.name;
    EXPECT_THAT([&] { open(); }, Throws<Error>(Property(&Error::kind, ErrorKind::input))) << hostile.name;
    EXPECT_THAT([&] { TensorReader(path_, "alpa-profile", "1.0"); }, Throws<Error>()) << hostile.name;
  }
}

TEST_F(HostileFile, IsReadWhenThereIsNothingWrongWithIt) {
  make([](hid_t f) { add_dataset(f, {{4}, H5T_IEEE_F64LE, chunked({2}, true)}); });
  EXPECT_EQ(H5Reader(path_, "alpa-profile", "1.0").doubles("/seconds"), (std::vector<double>{1, 2, 3, 4}));
}

TEST_F(HostileFile, IsNotCutIntoVeryManySmallChunks) {
  // Chunks that are there without an index and without any room on disk.
  make(
      [](hid_t f) {
        add_dataset(f, {{hsize_t{1} << 21}, H5T_STD_U8LE, [](hid_t creation) {
                          chunked({1})(creation);
                          H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
                          H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
                        }});
      },
      "alpa-profile", "1.0", H5F_LIBVER_V110);
  EXPECT_THAT([&] { H5Reader(path_, "alpa-profile", "1.0"); },
              ThrowsMessage<Error>(HasSubstr(
                  "'/seconds' is cut into 2097152 chunks of 1 bytes, and so many have at least 16384")));
}

TEST_F(HostileFile, LacksDataThatWouldReadAsZeros) {
  make([](hid_t f) { add_dataset(f, {{20}, H5T_IEEE_F64LE, chunked({10})}); });
  EXPECT_THAT([&] { H5Reader(path_, "alpa-profile", "1.0").doubles("/seconds"); },
              ThrowsMessage<Error>(HasSubstr("'/seconds': has 0 of 2 chunks")));
  make([](hid_t f) { add_dataset(f, {{5}}); });
  EXPECT_THAT([&] { H5Reader(path_, "alpa-profile", "1.0").doubles("/seconds"); },
              ThrowsMessage<Error>(HasSubstr("'/seconds': its data is missing")));
}

TEST_F(HostileFile, HasAnEnumerationThatDoesNotNameItsValue) {
  make([](hid_t f) {
    const hid_t type = H5Tenum_create(H5T_STD_I32LE);
    const std::int32_t forward = 3;
    H5Tenum_insert(type, "forward", &forward);
    add_dataset(f, {{4}, type, [](hid_t c) { H5Pset_alloc_time(c, H5D_ALLOC_TIME_EARLY); }}, "kind");
    H5Tclose(type);
  });
  EXPECT_THAT([&] { H5Reader(path_, "alpa-profile", "1.0").enum_names("/kind"); },
              ThrowsMessage<Error>(HasSubstr("'/kind': element 0 is none of the enumeration's values")));
}

TEST_F(HostileFile, SaysWhatItIsOnlyInTheExpectedForm) {
  const auto nothing = [](hid_t) {};
  const auto add_number = [](const char* name) {
    return [=](hid_t f) {
      const hid_t space = H5Screate(H5S_SCALAR);
      H5Aclose(H5Acreate2(f, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT));
      H5Sclose(space);
    };
  };
  make(nothing, nullptr);
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("found an HDF5 file without a format")));
  make(nothing, "alpa-plan");
  EXPECT_THAT([&] { open(); },
              ThrowsMessage<Error>(HasSubstr("expected an 'alpa-profile' file, found an 'alpa-plan' file")));
  make(nothing, "alpa-profile", nullptr);
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("attribute 'format_version' is missing")));
  make(add_number("format"), nullptr);
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("attribute 'format' is not a string")));
  make(nothing, "alpa-profile", "2.0");
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(AllOf(HasSubstr("2.0 is newer than 1.0"),
                                                          HasSubstr("make the file again"))));
  for (const char* version : {"1", "one.two", "-1.0", "1.", "1.0.0", "99999999999.0"}) {
    make(nothing, "alpa-profile", version);
    EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("is not MAJOR.MINOR"))) << version;
  }
}

TEST_F(HostileFile, IsNoHdf5FileAtAll) {
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("No such file or directory")));
  publish_text(path_, "");
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("is not an HDF5 file")));
  publish_text(path_, "name = \"gpt\"\n");
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("is not an HDF5 file")));
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("it is a folder")));
  std::filesystem::remove(path_);
  // Opening a pipe would wait for a writer for ever.
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("not a regular file")));
}

}  // namespace
}  // namespace alpa
