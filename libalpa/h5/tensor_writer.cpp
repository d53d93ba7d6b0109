#include <fmt/core.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/h5/image.h"
#include "libalpa/h5/ranks.h"
#include "libalpa/h5/tensor_file.h"
#include "libalpa/h5/tensor_region.h"

namespace alpa {
namespace {

// What one collective write moves at most, per rank; HDF5 keeps a copy of the chunks it touches.
constexpr std::int64_t write_bytes = 64 << 20;

std::string path_of(const std::string& name) { return "/tensors/" + name; }

}  // namespace

struct TensorWriter::Open {
  Ranks ranks;
  std::filesystem::path target;
  std::string format, format_version;
  std::vector<std::function<void(H5Image&)>> annotations;
  std::vector<std::pair<std::string, TensorType>> order;
  std::map<std::string, TensorType> types;

  std::optional<AtomicFile> temporary;  // on rank 0
  std::string temporary_path;           // on all
  enum class State { declaring, writing, ended } state = State::declaring;
  H5File file;

  void create() {
    ranks.together([&] {
      if (ranks.rank() == 0) temporary.emplace(target);
    });
    temporary_path = ranks.from_first(temporary ? temporary->temporary_path().string() : "");
  }

  // Rank 0 lays out the whole file alone, then all open it: HDF5 would have every rank make the same objects
  // in the same order with the same contents.
  void start() {
    if (state == State::writing) return;
    if (state == State::ended)
      throw Error(ErrorKind::run_time, fmt::format("'{}' was given up after a failure", target.string()));
    state = State::ended;
    check_declarations();
    ranks.together([&] {
      if (ranks.rank() == 0) lay_out();
    });
    ranks.together([&] {
      prepare_hdf5();
      file = H5File(
          checked(H5Fopen(temporary_path.c_str(), H5F_ACC_RDWR, ranks.file_access()), "opening a file"));
    });
    state = State::writing;
  }

  void check_declarations() const {
    std::string text;
    for (const auto& [name, type] : order) text += name + ' ' + type_text(type) + '\n';
    const auto mine = static_cast<std::int64_t>(hash64(text) >> 1);
    if (ranks.most(mine) != -ranks.most(-mine))
      throw Error(ErrorKind::run_time,
                  fmt::format("the ranks that write '{}' declare different tensors", target.string()));
  }

  void lay_out() {
    H5Image image(temporary_path, format, format_version);
    for (const auto& annotate : annotations) annotate(image);
    const H5Type bfloat16 = bfloat16_type();
    image.commit("/types/bfloat16", bfloat16);
    std::int64_t data_bytes = 0;
    constexpr std::int64_t index_bytes = 4 << 10;  // per tensor, and again per 32 of its chunks
    for (const auto& [name, type] : order) {
      const Shape extent = stored_extent(type.shape);
      const H5Type element = element_type(type.dtype);
      image.dataset(path_of(name), type.dtype == DType::bf16 ? bfloat16 : element, extent, nullptr);
      image.attribute(path_of(name), "units", std::string_view("1"));
      image.attribute(path_of(name), "alpa_dtype", dtype_name(type.dtype));
      if (type.shape.empty()) image.attribute(path_of(name), "rank", std::int64_t{0});
      const std::int64_t stored = stored_bytes(extent, dtype_bytes(type.dtype));
      data_bytes += stored + index_bytes + stored / (32 << 10);
    }
    const std::string bytes = image.bytes();
    temporary->write(bytes);
    temporary->reserve(static_cast<std::int64_t>(bytes.size()) + data_bytes);
  }

  void write(const std::string& name, const TensorRegion* region, const void* data) {
    start();
    const auto known = types.find(name);
    std::vector<TensorRegion> pieces;
    guarded([&] {
      if (known == types.end())
        throw Error(ErrorKind::run_time, fmt::format("tensor '{}' was not declared", name));
      if (!region) return;
      const std::string fault = region_fault(*region, known->second.shape);
      if (!fault.empty()) throw Error(ErrorKind::run_time, fmt::format("tensor '{}': {}", name, fault));
      if (element_count(region->count) > 0)
        pieces = pieces_of(*region, dtype_bytes(known->second.dtype), write_bytes);
    });
    const std::int64_t rounds = ranks.most(static_cast<std::int64_t>(pieces.size()));
    if (rounds > 0)
      guarded([&] {
        write_pieces(known->second, path_of(name), pieces, rounds, static_cast<const char*>(data));
      });
  }

  void write_pieces(const TensorType& type, const std::string& path, const std::vector<TensorRegion>& pieces,
                    std::int64_t rounds, const char* data) {
    const H5List transfer = ranks.transfer();
    const H5Type element = element_type(type.dtype);
    const H5Dataset dataset(checked(H5Dopen2(file, path.c_str(), H5P_DEFAULT), "opening a tensor"));
    bool failed = false;
    std::string message;
    for (std::int64_t round = 0; round < rounds; ++round) {
      const bool takes_part = round < static_cast<std::int64_t>(pieces.size());
      const TensorRegion& piece = takes_part ? pieces[static_cast<std::size_t>(round)] : TensorRegion{};
      const std::int64_t elements = takes_part ? element_count(piece.count) : 1;
      const H5Space in_file =
          takes_part ? selection(piece, type.shape) : simple_space(stored_extent(type.shape));
      const H5Space in_memory = simple_space({elements});
      const char nothing = 0;
      if (!takes_part) {
        checked(H5Sselect_none(in_file), "selecting nothing");
        checked(H5Sselect_none(in_memory), "selecting nothing");
      }
      // A rank that failed still takes its turn, since the others wait for it in the collective.
      if (H5Dwrite(dataset, element, in_memory, in_file, transfer, takes_part ? data : &nothing) < 0 &&
          !failed) {
        failed = true;
        message = hdf5_message();
      }
      if (takes_part) data += elements * dtype_bytes(type.dtype);
    }
    if (failed)
      throw Error(ErrorKind::run_time,
                  fmt::format("cannot write '{}' to '{}': {}", path, target.string(), message),
                  "free some space or quota, or write to another file system");
  }

  void publish() {
    start();
    guarded([&] {
      if (!file.reset())
        throw Error(ErrorKind::run_time,
                    fmt::format("cannot complete '{}': {}", target.string(), hdf5_message()),
                    "free some space or quota, or write to another file system");
    });
    ranks.together([&] {
      if (ranks.rank() == 0) temporary->publish();
    });
  }

  // As together(), but a failure also ends the file, on all ranks at once.
  void guarded(const std::function<void()>& body) {
    try {
      ranks.together(body);
    } catch (const Error&) {
      state = State::ended;
      file.reset();
      hdf5_message();
      throw;
    }
  }
};

TensorWriter::TensorWriter(std::filesystem::path path, std::string_view format,
                           std::string_view format_version)
    : open_(new Open{Ranks(),
                     std::move(path),
                     std::string(format),
                     std::string(format_version),
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {}}) {
  open_->create();
}

TensorWriter::TensorWriter(std::filesystem::path path, std::string_view format,
                           std::string_view format_version, int native_communicator)
    : open_(new Open{Ranks(native_communicator),
                     std::move(path),
                     std::string(format),
                     std::string(format_version),
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {}}) {
  open_->create();
}

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
  if (!open_->types.emplace(name, type).second)
    throw Error(ErrorKind::run_time, fmt::format("tensor '{}' is declared twice", name));
  open_->order.emplace_back(name, type);
}

void TensorWriter::write(const std::string& name, const TensorRegion& region, const void* data) {
  open_->write(name, &region, data);
}

void TensorWriter::write_nothing(const std::string& name) { open_->write(name, nullptr, nullptr); }

void TensorWriter::publish() {
  open_->publish();
  open_.reset();
}

}  // namespace alpa
