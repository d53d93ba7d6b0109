#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/h5/chunk_transfer.h"
#include "libalpa/h5/chunk_writer.h"
#include "libalpa/h5/chunks.h"
#include "libalpa/h5/descriptor.h"
#include "libalpa/h5/image.h"
#include "libalpa/h5/ranks.h"
#include "libalpa/h5/tensor_file.h"

namespace alpa {
namespace {

std::int64_t short_hash(const std::string& text) { return static_cast<std::int64_t>(hash64(text) >> 1); }

}  // namespace

TensorPart::TensorPart(TensorRegion held, const void* data)
    : TensorPart(held, held.count, [data](std::int64_t first, std::span<std::byte> into) {
        std::memcpy(into.data(), static_cast<const std::byte*>(data) + first, into.size());
      }) {}

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
  std::vector<std::string> names;
  std::set<std::string> known;
  std::vector<SharedTensor> tensors;               // by name
  std::vector<std::vector<std::int64_t>> offsets;  // in the file, of the chunks of each tensor

  std::optional<AtomicFile> temporary;  // on rank 0
  std::string temporary_path;           // on all
  enum class State { describing, writing, ended } state = State::describing;
  std::optional<BackgroundWriter> background;

  void create() {
    ranks.together([&] {
      if (ranks.rank() == 0) temporary.emplace(target);
    });
    temporary_path =
        ranks.from_first(temporary ? std::filesystem::absolute(temporary->temporary_path()).string() : "");
  }

  void describe(const std::string& name, const TensorType& type, std::vector<TensorPart> parts) {
    if (name.empty() || name == "." || name.find('/') != std::string::npos)
      throw Error(ErrorKind::run_time, fmt::format("'{}' cannot name a tensor in a file", name));
    if (!known.insert(name).second)
      throw Error(ErrorKind::run_time, fmt::format("tensor '{}' is described twice", name));
    names.push_back(name);
    tensors.push_back({type, std::move(parts), {}});
  }

  // Rank 0 lays out the file, which has a place for every chunk; then each rank opens it and writes chunks as
  // plain bytes. HDF5's own parallel writing would be less code, but a rank whose write fails there leaves
  // the others waiting for ever, and it fills each chunk before it writes it.
  ChunkWriter start() {
    if (state == State::ended)
      throw Error(ErrorKind::run_time, fmt::format("'{}' was given up after a failure", target.string()));
    state = State::ended;
    check_tensors();
    plan();
    ranks.together([&] {
      if (ranks.rank() == 0) lay_out();
    });
    share_places();
    Descriptor file;
    ranks.together([&] {
      file = Descriptor(open(temporary_path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
      if (file < 0) throw file_error(ErrorKind::run_time, "write", temporary_path, errno);
    });
    return {std::move(file), target};
  }

  void check_tensors() const {
    std::string text;
    for (std::size_t t = 0; t < names.size(); ++t) text += names[t] + ' ' + type_text(tensors[t].type) + '\n';
    const auto hashes = ranks.gathered({short_hash(text)});
    if (std::adjacent_find(hashes.begin(), hashes.end(), std::not_equal_to<>()) != hashes.end())
      throw Error(ErrorKind::run_time,
                  fmt::format("the ranks that write '{}' describe different tensors", target.string()));
    ranks.together([&] {
      for (std::size_t t = 0; t < names.size(); ++t)
        for (const TensorPart& part : tensors[t].mine)
          if (const std::string fault = region_fault(part.region, tensors[t].type.shape); !fault.empty())
            throw Error(ErrorKind::run_time, fmt::format("tensor '{}': {}", names[t], fault));
    });
  }

  // All ranks find the same from what each sends the others: what it holds.
  void plan() {
    std::vector<std::int64_t> mine;
    for (const SharedTensor& tensor : tensors) {
      mine.push_back(std::ssize(tensor.mine));
      for (const TensorPart& part : tensor.mine) {
        mine.insert(mine.end(), part.region.offset.begin(), part.region.offset.end());
        mine.insert(mine.end(), part.region.count.begin(), part.region.count.end());
      }
    }
    std::vector<HeldTensor> held;
    for (const SharedTensor& tensor : tensors) held.push_back({tensor.type, {}});
    const auto all = ranks.gathered(mine);
    for (std::size_t r = 0; r < all.size(); ++r) {
      auto next = all[r].begin();
      const auto take = [&](std::size_t extents) {
        const Shape taken(next, next + static_cast<std::ptrdiff_t>(extents));
        next += static_cast<std::ptrdiff_t>(extents);
        return taken;
      };
      for (HeldTensor& tensor : held) {
        const std::int64_t parts = *next++;
        for (int index = 0; index < parts; ++index) {
          Shape offset = take(tensor.type.shape.size()), count = take(tensor.type.shape.size());
          tensor.held.push_back({static_cast<int>(r), index, {std::move(offset), std::move(count)}});
        }
      }
    }
    std::vector<std::vector<ChunkPlan>> plans = plan_chunks(held, ranks.size());
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      for (const ChunkPlan& chunk : plans[t])
        if (!chunk.missing.empty())
          throw Error(ErrorKind::run_time, fmt::format("tensor '{}': no rank writes region {} at offset {}",
                                                       names[t], shape_text(chunk.missing.front().count),
                                                       shape_text(chunk.missing.front().offset)));
      tensors[t].chunks = std::move(plans[t]);
    }
  }

  void lay_out() {
    H5Image image(temporary_path, format, format_version, MemoryFile::Placement::paged);
    image.group("/tensors");
    const H5Type bfloat16 = bfloat16_type();
    image.commit("/types/bfloat16", bfloat16);
    for (std::size_t t = 0; t < names.size(); ++t) {
      const TensorType& type = tensors[t].type;
      const std::string path = "/tensors/" + names[t];
      const H5Type element = element_type(type.dtype);
      const Shape extent = stored_extent(type.shape);
      offsets.push_back(image.planned_dataset(path, type.dtype == DType::bf16 ? bfloat16 : element, extent,
                                              chunk_shape(extent, dtype_bytes(type.dtype))));
      image.attribute(path, "units", std::string_view("1"));
      image.attribute(path, "alpa_dtype", dtype_name(type.dtype));
      if (type.shape.empty()) image.attribute(path, "rank", std::int64_t{0});
    }
    // Last, so that their length moves nothing else.
    for (const auto& annotate : annotations) annotate(image);
    image.write_to(*temporary);
  }

  void share_places() {
    std::string text;
    for (const std::vector<std::int64_t>& of_tensor : offsets)
      text.append(reinterpret_cast<const char*>(of_tensor.data()), of_tensor.size() * sizeof of_tensor[0]);
    text = ranks.from_first(text);
    offsets.assign(tensors.size(), {});
    const char* next = text.data();
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      offsets[t].resize(tensors[t].chunks.size());
      const std::size_t bytes = offsets[t].size() * sizeof(std::int64_t);
      std::copy_n(next, bytes, reinterpret_cast<char*>(offsets[t].data()));
      next += bytes;
    }
  }

  void write() {
    ChunkWriter writer = start();
    ChunkTransfer chunks(ranks, tensors);
    transfer(chunks, [&](std::int64_t offset, const ChunkBytes& chunk) { writer.write(offset, chunk); });
    // Each machine's own writes; rank 0 can only bring its own to disk.
    ranks.together([&] { writer.finish(); });
    state = State::writing;
  }

  void write_in_background() {
    ChunkWriter writer = start();
    ChunkTransfer chunks(ranks, tensors);
    ranks.together([&] {
      chunks.reserve();
      background.emplace(std::move(writer));
    });
    transfer(chunks,
             [&](std::int64_t offset, ChunkBytes chunk) { background->add(offset, std::move(chunk)); });
    background->close();
    for (SharedTensor& tensor : tensors) tensor.mine.clear();  // theirs may be gone
    state = State::writing;
  }

  template <class Take>
  void transfer(ChunkTransfer& chunks, const Take& take) {
    ranks.together([&] {
      chunks.run([&](std::size_t tensor, std::size_t chunk, ChunkBytes bytes) {
        take(offsets[tensor][chunk], std::move(bytes));
      });
    });
  }

  void publish() {
    if (state != State::writing) write();
    state = State::ended;
    if (background) {
      // So long that no wait of the others is for more than a piece of it.
      while (ranks.any(!background->wait_for_progress())) continue;
      ranks.together([&] { background->check(); });
      background.reset();
    }
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

void TensorWriter::tensor(const std::string& name, const TensorType& type, std::vector<TensorPart> parts) {
  open_->describe(name, type, std::move(parts));
}

void TensorWriter::write_in_background() { open_->write_in_background(); }

bool TensorWriter::is_written() const { return open_->background && open_->background->is_done(); }

bool TensorWriter::is_in_place() const {
  return !open_->temporary || std::filesystem::exists(open_->temporary->temporary_path());
}

void TensorWriter::publish() {
  open_->publish();
  open_.reset();
}

}  // namespace alpa
