#include "libalpa/h5/memory_file.h"

#include <algorithm>
#include <new>

namespace alpa {
namespace {

// What HDF5 hands to each callback of a driver.
struct Opened : H5FD_t {
  MemoryFile* file = nullptr;
};

struct Settings {
  MemoryFile* file;
};

std::int64_t rounded_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

struct MemoryFile::Callbacks {
  static MemoryFile& of(const H5FD_t* opened) { return *static_cast<const Opened*>(opened)->file; }

  static H5FD_t* open(const char*, unsigned, hid_t access, haddr_t) {
    const auto* settings = static_cast<const Settings*>(H5Pget_driver_info(access));
    if (!settings) return nullptr;
    auto* opened = new (std::nothrow) Opened{};
    if (opened) opened->file = settings->file;
    return opened;
  }

  static herr_t close(H5FD_t* opened) {
    delete static_cast<Opened*>(opened);
    return 0;
  }

  static herr_t query(const H5FD_t*, unsigned long* flags) {
    *flags = 0;
    return 0;
  }

  static haddr_t allocate(H5FD_t* opened, H5FD_mem_t type, hid_t, hsize_t bytes) {
    return static_cast<haddr_t>(of(opened).allocate(type == H5FD_MEM_DRAW, static_cast<std::int64_t>(bytes)));
  }

  static haddr_t end(const H5FD_t* opened, H5FD_mem_t) { return static_cast<haddr_t>(of(opened).end_); }

  static herr_t set_end(H5FD_t* opened, H5FD_mem_t, haddr_t end) {
    of(opened).end_ = static_cast<std::int64_t>(end);
    return 0;
  }

  static herr_t read(H5FD_t* opened, H5FD_mem_t, hid_t, haddr_t offset, size_t size, void* buffer) {
    of(opened).read(static_cast<std::int64_t>(offset), {static_cast<char*>(buffer), size});
    return 0;
  }

  static herr_t write(H5FD_t* opened, H5FD_mem_t type, hid_t, haddr_t offset, size_t size,
                      const void* buffer) {
    try {
      const std::string_view bytes(static_cast<const char*>(buffer), size);
      of(opened).write(type == H5FD_MEM_DRAW, static_cast<std::int64_t>(offset), bytes);
      return 0;
    } catch (const std::bad_alloc&) {
      return -1;
    }
  }
};

H5Driver MemoryFile::driver() {
  H5FD_class_t driver{};
  driver.name = "memory of a file under construction";
  driver.maxaddr = static_cast<haddr_t>(INT64_MAX);
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(Settings);
  driver.open = Callbacks::open;
  driver.close = Callbacks::close;
  driver.query = Callbacks::query;
  driver.alloc = Callbacks::allocate;
  driver.get_eoa = Callbacks::end;
  driver.set_eoa = Callbacks::set_end;
  driver.get_eof = Callbacks::end;
  driver.read = Callbacks::read;
  driver.write = Callbacks::write;
  // Space that metadata gives back is not given to data.
  const H5FD_mem_t kinds[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(kinds), std::end(kinds), driver.fl_map);
  return H5Driver(checked(H5FDregister(&driver), "registering a driver"));
}

H5List MemoryFile::access(hid_t driver, MemoryFile& file) {
  H5List access(checked(H5Pcreate(H5P_FILE_ACCESS), "making a property list"));
  const Settings settings{&file};
  checked(H5Pset_driver(access, driver, &settings), "choosing a driver");
  return access;
}

std::int64_t MemoryFile::allocate(bool is_data, std::int64_t bytes) {
  const bool own_pages = is_data && placement_ == Placement::paged;
  const std::int64_t offset = own_pages ? rounded_up(end_, page_bytes) : end_;
  end_ = own_pages ? rounded_up(offset + bytes, page_bytes) : offset + bytes;
  return offset;
}

void MemoryFile::write(bool is_data, std::int64_t offset, std::string_view bytes) {
  if (is_data && planning_) {
    planned_.push_back(offset);
    return;
  }
  while (!bytes.empty()) {
    const std::int64_t page = offset / page_bytes * page_bytes;
    const auto part = static_cast<std::size_t>(
        std::min<std::int64_t>(static_cast<std::int64_t>(bytes.size()), page + page_bytes - offset));
    const auto [kept, is_new] = pages_.try_emplace(page);
    if (is_new) kept->second.fill(0);
    bytes.copy(kept->second.data() + (offset - page), part);
    bytes.remove_prefix(part);
    offset += static_cast<std::int64_t>(part);
  }
}

void MemoryFile::read(std::int64_t offset, std::span<char> bytes) const {
  while (!bytes.empty()) {
    const std::int64_t page = offset / page_bytes * page_bytes;
    const auto part = static_cast<std::size_t>(
        std::min<std::int64_t>(static_cast<std::int64_t>(bytes.size()), page + page_bytes - offset));
    const auto kept = pages_.find(page);
    if (kept == pages_.end())
      std::fill_n(bytes.data(), part, '\0');
    else
      std::copy_n(kept->second.data() + (offset - page), part, bytes.data());
    bytes = bytes.subspan(part);
    offset += static_cast<std::int64_t>(part);
  }
}

}  // namespace alpa
