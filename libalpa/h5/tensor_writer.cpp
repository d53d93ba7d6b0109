#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/h5/chunk_transfer.h"
#include "libalpa/h5/chunks.h"
#include "libalpa/h5/descriptor.h"
#include "libalpa/h5/image.h"
#include "libalpa/h5/ranks.h"
#include "libalpa/h5/tensor_file.h"

namespace alpa {
namespace {

std::int64_t short_hash(const std::string& text) { return static_cast<std::int64_t>(hash64(text) >> 1); }

// Where the values of a tensor stand in the file.
struct Place {
  TensorType type;
  std::vector<std::int64_t> chunks;  // offset of each, in row-major order
};

}  // namespace

struct TensorWriter::Open {
  Open(std::filesystem::path path, std::string_view format_name, std::string_view version)
      : target(std::move(path)), format(format_name), format_version(version) {
    create();
  }
  Open(std::filesystem::path path, std::string_view format_name, std::string_view version,
       const WritingRanks& all)
      : ranks(all.all, all.host), target(std::move(path)), format(format_name), format_version(version) {
    create();
  }

  Ranks ranks;
  std::filesystem::path target;
  std::string format, format_version;
  std::vector<std::function<void(H5Image&)>> annotations;
  std::vector<std::string> order;
  std::map<std::string, Place> places;
  std::set<std::string> written;

  std::optional<AtomicFile> temporary;  // on rank 0
  std::string temporary_path;           // on all
  enum class State { declaring, writing, ended } state = State::declaring;
  Descriptor file;
  std::int64_t unsynced = 0;     // bytes that this rank has written and not brought to disk
  std::optional<Error> failure;  // of this rank, not yet known to the others

  void create() {
    ranks.together([&] {
      if (ranks.rank() == 0) temporary.emplace(target);
    });
    temporary_path =
        ranks.from_first(temporary ? std::filesystem::absolute(temporary->temporary_path()).string() : "");
  }

  // Rank 0 lays out the file, which has a place for every chunk; then each rank opens it and writes chunks as
  // plain bytes. HDF5's own parallel writing would be less code, but a rank whose write fails there leaves
  // the others waiting for ever, and it fills each chunk before it writes it.
  void start() {
    if (state == State::writing) return;
    if (state == State::ended)
      throw Error(ErrorKind::run_time, fmt::format("'{}' was given up after a failure", target.string()));
    state = State::ended;
    check_declarations();
    ranks.together([&] {
      if (ranks.rank() == 0) lay_out();
    });
    share_places();
    ranks.together([&] {
      file = Descriptor(open(temporary_path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
      if (file < 0) throw file_error(ErrorKind::run_time, "write", temporary_path, errno);
    });
    state = State::writing;
  }

  void check_declarations() const {
    std::string text;
    for (const std::string& name : order) text += name + ' ' + type_text(places.at(name).type) + '\n';
    const auto hashes = ranks.gathered({short_hash(text)});
    if (std::adjacent_find(hashes.begin(), hashes.end(), std::not_equal_to<>()) != hashes.end())
      throw Error(ErrorKind::run_time,
                  fmt::format("the ranks that write '{}' declare different tensors", target.string()));
  }

  void lay_out() {
    H5Image image(temporary_path, format, format_version, MemoryFile::Placement::paged);
    image.group("/tensors");
    const H5Type bfloat16 = bfloat16_type();
    image.commit("/types/bfloat16", bfloat16);
    for (const std::string& name : order) {
      Place& place = places.at(name);
      const std::string path = "/tensors/" + name;
      const H5Type element = element_type(place.type.dtype);
      const Shape extent = stored_extent(place.type.shape);
      place.chunks = image.planned_dataset(path, place.type.dtype == DType::bf16 ? bfloat16 : element, extent,
                                           chunk_shape(extent, dtype_bytes(place.type.dtype)));
      image.attribute(path, "units", std::string_view("1"));
      image.attribute(path, "alpa_dtype", dtype_name(place.type.dtype));
      if (place.type.shape.empty()) image.attribute(path, "rank", std::int64_t{0});
    }
    // Last, so that their length moves nothing else.
    for (const auto& annotate : annotations) annotate(image);
    image.write_to(*temporary);
  }

  void share_places() {
    std::string text;
    if (ranks.rank() == 0)
      for (const std::string& name : order)
        for (const std::int64_t offset : places.at(name).chunks)
          text.append(reinterpret_cast<const char*>(&offset), sizeof offset);
    text = ranks.from_first(text);
    const char* next = text.data();
    for (const std::string& name : order) {
      Place& place = places.at(name);
      const Shape extent = stored_extent(place.type.shape);
      const Shape chunk = chunk_shape(extent, dtype_bytes(place.type.dtype));
      place.chunks.resize(static_cast<std::size_t>(chunk_count(extent, chunk)));
      for (std::int64_t& offset : place.chunks) {
        std::memcpy(&offset, next, sizeof offset);
        next += sizeof offset;
      }
    }
  }

  // Each rank sends the others what it holds and whether it still can write.
  void write(const std::string& name, std::span<const TensorPart> parts) {
    start();
    state = State::ended;
    const auto place = places.find(name);
    check(name, place == places.end() ? nullptr : &place->second, parts);
    std::vector<std::int64_t> mine{failure ? 1 : 0, short_hash(name)};
    for (const TensorPart& part : failure ? std::span<const TensorPart>{} : parts) {
      const auto [offset, count] = stored_region(part.region);
      mine.insert(mine.end(), offset.begin(), offset.end());
      mine.insert(mine.end(), count.begin(), count.end());
    }
    const auto all = ranks.gathered(mine);
    if (std::any_of(all.begin(), all.end(), [](const auto& words) { return words[0] != 0; })) throw_failure();
    if (std::any_of(all.begin(), all.end(), [&](const auto& words) { return words[1] != mine[1]; }))
      throw Error(ErrorKind::run_time,
                  fmt::format("the ranks that write '{}' write different tensors at once, one of them '{}'",
                              target.string(), name));

    ChunkTransfer transfer(ranks, place->second.type,
                           held_regions(all, stored_extent(place->second.type.shape).size()), parts);
    if (const auto missing = transfer.missing())
      throw Error(ErrorKind::run_time, fmt::format("tensor '{}': no rank writes region {} at offset {}", name,
                                                   shape_text(missing->count), shape_text(missing->offset)));
    try {
      transfer.run([&](std::size_t chunk, std::string_view bytes) {
        write_at(file, place->second.chunks[chunk], bytes, target);
        unsynced += std::ssize(bytes);
        if (unsynced < ChunkTransfer::bytes_between_meetings) return;
        sync(file, target);
        unsynced = 0;
      });
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::peer) throw;
      failure = error;
    }
    written.insert(name);
    state = State::writing;
  }

  void check(const std::string& name, const Place* place, std::span<const TensorPart> parts) {
    std::string fault;
    if (!place)
      fault = "was not declared";
    else if (written.contains(name))
      fault = "is written twice";
    for (std::size_t i = 0; fault.empty() && i < parts.size(); ++i)
      fault = region_fault(parts[i].region, place->type.shape);
    if (!fault.empty() && !failure)
      failure = Error(ErrorKind::run_time, fmt::format("tensor '{}': {}", name, fault));
  }

  [[noreturn]] void throw_failure() {
    ranks.together([&] {
      if (failure) throw *failure;
    });
    throw std::logic_error("a failure that no rank reports");
  }

  static std::vector<HeldRegion> held_regions(const std::vector<std::vector<std::int64_t>>& all,
                                              std::size_t rank) {
    std::vector<HeldRegion> held;
    for (std::size_t r = 0; r < all.size(); ++r)
      for (std::size_t at = 2, index = 0; at < all[r].size(); at += 2 * rank, ++index) {
        const auto offset = all[r].begin() + static_cast<std::ptrdiff_t>(at);
        const auto count = offset + static_cast<std::ptrdiff_t>(rank);
        held.push_back({static_cast<int>(r),
                        static_cast<int>(index),
                        {{offset, count}, {count, count + static_cast<std::ptrdiff_t>(rank)}}});
      }
    return held;
  }

  void publish() {
    start();
    state = State::ended;
    for (const std::string& name : order)
      if (!written.contains(name) && element_count(places.at(name).type.shape) > 0)
        throw Error(ErrorKind::run_time,
                    fmt::format("tensor '{}' was declared for '{}' but not written", name, target.string()));
    ranks.together([&] {
      if (failure) throw *failure;
      // Each machine's own writes; rank 0 can only bring its own to disk.
      sync(file, target);
      file.reset();
    });
    ranks.together([&] {
      if (ranks.rank() == 0) temporary->publish();
    });
  }
};

TensorWriter::TensorWriter(std::filesystem::path path, std::string_view format,
                           std::string_view format_version)
    : open_(std::make_unique<Open>(std::move(path), format, format_version)) {}

TensorWriter::TensorWriter(std::filesystem::path path, std::string_view format,
                           std::string_view format_version, const WritingRanks& ranks)
    : open_(std::make_unique<Open>(std::move(path), format, format_version, ranks)) {}

TensorWriter::~TensorWriter() = default;

void TensorWriter::attribute(const std::string& name, std::string_view value) {
  open_->annotations.push_back(
      [=, text = std::string(value)](H5Image& image) { image.attribute("/", name, std::string_view(text)); });
}

void TensorWriter::attribute(const std::string& name, double value) {
  open_->annotations.push_back([=](H5Image& image) { image.attribute("/", name, value); });
}

void TensorWriter::integer_attribute(const std::string& name, std::int64_t value) {
  open_->annotations.push_back([=](H5Image& image) { image.attribute("/", name, value); });
}

void TensorWriter::provenance(Provenance provenance) {
  open_->annotations.push_back(
      [provenance = std::move(provenance)](H5Image& image) { image.provenance(provenance); });
}

void TensorWriter::declare(const std::string& name, const TensorType& type) {
  if (name.empty() || name == "." || name.find('/') != std::string::npos)
    throw Error(ErrorKind::run_time, fmt::format("'{}' cannot name a tensor in a file", name));
  if (!open_->places.try_emplace(name, Place{type, {}}).second)
    throw Error(ErrorKind::run_time, fmt::format("tensor '{}' is declared twice", name));
  open_->order.push_back(name);
}

void TensorWriter::write(const std::string& name, std::span<const TensorPart> parts) {
  open_->write(name, parts);
}

void TensorWriter::write(const std::string& name, const TensorRegion& region, const void* data) {
  const TensorPart part{region, data};
  open_->write(name, {&part, 1});
}

void TensorWriter::write_nothing(const std::string& name) { open_->write(name, {}); }

void TensorWriter::publish() {
  open_->publish();
  open_.reset();
}

}  // namespace alpa
