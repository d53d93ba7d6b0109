#include "libalpa/h5/global_heap.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace alpa {
namespace {

constexpr std::uint64_t most_bytes = 1 << 20;
constexpr int most_heap_objects = 1 << 16;  // of one collection: their indices have 16 bits

std::uint64_t little_endian(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

// What HDF5 has of the string in the attribute itself, left as it is stored.
herr_t leave(hid_t, hid_t, H5T_cdata_t* about, std::size_t, std::size_t, std::size_t, void*, void*, hid_t) {
  about->need_bkg = H5T_BKG_NO;
  return 0;
}

std::vector<std::uint8_t> stored(hid_t attribute, std::size_t bytes) {
  std::vector<std::uint8_t> reference(bytes);
  const H5Type some_string(H5Tcopy(H5T_C_S1)), raw(H5Tcreate(H5T_OPAQUE, bytes));
  checked(H5Tset_size(some_string, H5T_VARIABLE), "preparing to read a string");
  checked(H5Tregister(H5T_PERS_SOFT, "as stored", some_string, raw, leave), "preparing to read a string");
  const bool read = H5Aread(attribute, raw, reference.data()) >= 0;
  H5Tunregister(H5T_PERS_SOFT, "as stored", some_string, raw, leave);
  if (!read) reference.clear();
  return reference;
}

/// Bytes of the file, which start at the HDF5 address zero.
struct Bytes {
  int descriptor;
  std::uint64_t base, end;

  bool read(std::uint64_t address, void* into, std::uint64_t count) const {
    if (address > end || count > end - address) return false;
    return pread(descriptor, into, count, static_cast<off_t>(base + address)) == static_cast<ssize_t>(count);
  }
};

/// Looks for object `index` in the collection at `address`.
std::optional<std::string> object_text(const Bytes& file, std::uint64_t address, std::uint64_t index,
                                       std::uint64_t bytes, std::size_t size_bytes) {
  const auto padded = [](std::uint64_t count) { return (count + 7) / 8 * 8; };
  // "GCOL", version, three bytes of nothing, size; and an object: index, references, nothing, size.
  std::uint8_t header[16] = {};
  const std::uint64_t header_bytes = 8 + size_bytes;
  if (!file.read(address, header, header_bytes) || std::string(header, header + 4) != "GCOL" ||
      header[4] != 1)
    return {};
  const std::uint64_t size = little_endian(header + 8, size_bytes);
  if (size > file.end - address) return {};
  std::uint64_t at = padded(header_bytes);
  for (int i = 0; i < most_heap_objects && at < size && size - at >= padded(header_bytes); ++i) {
    if (!file.read(address + at, header, header_bytes)) return {};
    const std::uint64_t found = little_endian(header, 2), length = little_endian(header + 8, size_bytes);
    at += padded(header_bytes);
    if (found == 0 || length > size - at) return {};  // 0: the room that is left
    if (found == index) {
      std::string text(bytes, '\0');
      if (bytes > length || !file.read(address + at, text.data(), bytes)) return {};
      return text.substr(0, text.find('\0'));
    }
    at += padded(length);
  }
  return {};
}

}  // namespace

std::optional<std::string> variable_length_text(hid_t file, hid_t attribute) {
  const H5List creation(checked(H5Fget_create_plist(file), "looking at a file"));
  std::size_t address_bytes = 0, size_bytes = 0;
  hsize_t base = 0;
  void* descriptor = nullptr;
  checked(H5Pget_sizes(creation, &address_bytes, &size_bytes), "looking at a file");
  checked(H5Pget_userblock(creation, &base), "looking at a file");
  checked(H5Fget_vfd_handle(file, H5P_DEFAULT, &descriptor), "looking at a file");
  if (address_bytes > 8 || size_bytes > 8) return {};
  const std::vector<std::uint8_t> reference = stored(attribute, 4 + address_bytes + 4);
  if (reference.empty()) return {};
  const std::uint64_t bytes = little_endian(reference.data(), 4);
  const std::uint64_t address = little_endian(reference.data() + 4, address_bytes);
  const std::uint64_t index = little_endian(reference.data() + 4 + address_bytes, 4);
  if (address == 0) return bytes == 0 ? std::optional<std::string>("") : std::nullopt;  // none was written
  if (bytes > most_bytes) return {};
  const int number = *static_cast<const int*>(descriptor);
  struct stat about {};
  if (fstat(number, &about) != 0 || static_cast<hsize_t>(about.st_size) < base) return {};
  return object_text({number, base, static_cast<std::uint64_t>(about.st_size) - base}, address, index, bytes,
                     size_bytes);
}

}  // namespace alpa
