#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "libalpa/h5/checked_file.h"
#include "libalpa/h5/chunks.h"

namespace alpa {
namespace {

constexpr int deepest = 32;
constexpr std::size_t most_objects = 1'000'000;
constexpr hsize_t most_attribute_bytes = 1 << 20;
// zlib's best ratio is 1032:1; the margin is for rounding in small files.
constexpr std::int64_t best_deflate_ratio = 1100;
// Bookkeeping of the dimension-scale convention, which holds references; never read here.
constexpr std::string_view scale_attributes[] = {"DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS"};

class Visitor {
 public:
  Visitor(hid_t file, const std::string& name, std::int64_t file_bytes, std::int64_t max_dataset_bytes)
      : file_(file), name_(name), file_bytes_(file_bytes), max_dataset_bytes_(max_dataset_bytes) {}

  H5Listing run() {
    visit("/", 0);
    return std::move(listing_);
  }

 private:
  [[noreturn]] void refuse(const std::string& path, const std::string& problem) const {
    throw Error(
        ErrorKind::input, fmt::format("'{}': '{}' {}", name_, path, problem),
        "the file is damaged or was not written by this suite: make it again, or ask where it came from");
  }

  template <class Result>
  Result must(Result result, const std::string& path) const {
    if (result < 0) refuse(path, "cannot be read: " + hdf5_message());
    return result;
  }

  void visit(const std::string& path, int depth) {
    if (depth > deepest) refuse(path, fmt::format("lies deeper than {} groups", deepest));
    const H5Object object(must(H5Oopen(file_, path.c_str(), H5P_DEFAULT), path));
    H5O_info_t about{};
    must(H5Oget_info2(object, &about, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS), path);
    if (!addresses_.insert(about.addr).second)
      refuse(path, "is an object that has another path too, or a cycle");
    count_ += 1 + static_cast<std::size_t>(about.num_attrs);
    if (count_ > most_objects) refuse(path, fmt::format("exceeds {} objects in one file", most_objects));

    H5Entry entry;
    if (about.type == H5O_TYPE_DATASET)
      entry = dataset(object, path);
    else if (about.type == H5O_TYPE_NAMED_DATATYPE)
      entry = {H5Entry::Kind::type, {}, 0}, kind(object, path);
    else if (about.type != H5O_TYPE_GROUP)
      refuse(path, "is neither group, dataset nor type");
    listing_.emplace(path, std::move(entry));

    for (const std::string& name : attributes(object, path)) attribute(object, name, path);
    if (about.type == H5O_TYPE_GROUP)
      for (const std::string& child : links(object, path))
        visit((path == "/" ? path : path + "/") + child, depth + 1);
  }

  struct Links {
    std::vector<std::string> names;
    std::string refused;  // the first link that is not hard
    std::size_t room;
  };

  static herr_t take_link(hid_t, const char* name, const H5L_info_t* about, void* client) {
    auto& links = *static_cast<Links*>(client);
    if (about->type == H5L_TYPE_HARD && links.names.size() < links.room) {
      links.names.emplace_back(name);
      return 0;
    }
    const char* kind = about->type == H5L_TYPE_SOFT       ? "a soft link"
                       : about->type == H5L_TYPE_EXTERNAL ? "a link into another file"
                       : about->type == H5L_TYPE_HARD     ? "one object too many"
                                                          : "a user-defined link";
    links.refused = fmt::format("holds {}, '{}'", kind, name);
    return 1;
  }

  std::vector<std::string> links(hid_t group, const std::string& path) const {
    Links links{{}, {}, most_objects - count_};
    // In the order of the file: to sort, HDF5 1.10.8 makes a table first, and frees what is not in it when
    // the group turns out to be damaged.
    must(H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, take_link, &links), path);
    if (!links.refused.empty()) refuse(path, links.refused);
    std::sort(links.names.begin(), links.names.end());
    return std::move(links.names);
  }

  H5Entry::Kind kind(hid_t type, const std::string& path) const {
    const std::size_t size = H5Tget_size(type);
    switch (H5Tget_class(type)) {
      case H5T_INTEGER:
        if (size <= 8 && H5Tget_precision(type) == 8 * size && H5Tget_offset(type) == 0)
          return H5Entry::Kind::integers;
        refuse(path, "has integers with padding bits");
      case H5T_FLOAT:
        for (const hid_t known : {H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_IEEE_F32BE, H5T_IEEE_F64BE})
          if (H5Tequal(type, known) > 0) return H5Entry::Kind::floats;
        if (H5Tequal(type, float16_type()) > 0) return H5Entry::Kind::floats;
        if (H5Tequal(type, bfloat16_type()) > 0) return H5Entry::Kind::bfloat16;
        refuse(path, "has a float type that is neither IEEE 16, 32 or 64 bit nor bfloat16");
      case H5T_STRING:
        return H5Entry::Kind::strings;
      case H5T_ENUM: {
        const H5Type base(must(H5Tget_super(type), path));
        if (H5Tget_class(base) != H5T_INTEGER || H5Tget_nmembers(type) > 1 << 16)
          refuse(path, "has a strange enumeration");
        return H5Entry::Kind::enumeration;
      }
      default:
        refuse(path, "has a type other than integers, floats, strings and enumerations of integers");
    }
  }

  static herr_t take_attribute(hid_t, const char* name, const H5A_info_t*, void* client) {
    static_cast<std::vector<std::string>*>(client)->emplace_back(name);
    return 0;
  }

  std::vector<std::string> attributes(hid_t object, const std::string& path) const {
    std::vector<std::string> names;
    must(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, take_attribute, &names), path);
    std::sort(names.begin(), names.end());
    return names;
  }

  void attribute(hid_t object, const std::string& name, const std::string& path) const {
    if (std::find(std::begin(scale_attributes), std::end(scale_attributes), name) !=
        std::end(scale_attributes))
      return;
    const H5Attribute attribute(must(H5Aopen(object, name.c_str(), H5P_DEFAULT), path));
    const H5Type type(must(H5Aget_type(attribute), path));
    kind(type, fmt::format("{} attribute {}", path, name));
    if (must(H5Aget_storage_size(attribute), path) > most_attribute_bytes)
      refuse(path, fmt::format("has a huge attribute '{}'", name));
  }

  H5Entry dataset(hid_t dataset, const std::string& path) const {
    const H5List creation(must(H5Dget_create_plist(dataset), path));
    if (must(H5Pget_external_count(creation), path) > 0) refuse(path, "keeps its data in another file");
    const H5D_layout_t layout = H5Pget_layout(creation);
    if (layout == H5D_VIRTUAL) refuse(path, "is a virtual dataset");
    if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED)
      refuse(path, "has an unknown layout");
    const bool deflated = check_filters(creation, path);

    const H5Type type(must(H5Dget_type(dataset), path));
    if (H5Tis_variable_str(type) > 0) refuse(path, "has variable-length strings");
    H5Entry entry{kind(type, path), {}, static_cast<std::int64_t>(H5Tget_size(type))};
    const H5Space space(must(H5Dget_space(dataset), path));
    if (H5Sget_simple_extent_type(space) == H5S_NULL) refuse(path, "has no extent");
    hsize_t extent[H5S_MAX_RANK] = {};
    const int rank = must(H5Sget_simple_extent_dims(space, extent, nullptr), path);

    const std::int64_t from_file = deflated ? saturated(file_bytes_, best_deflate_ratio) : file_bytes_;
    check_claim(extent, rank, entry.element_bytes, std::min(from_file, max_dataset_bytes_), path);
    if (layout == H5D_CHUNKED) {
      hsize_t chunk[H5S_MAX_RANK] = {};
      const int chunk_rank = must(H5Pget_chunk(creation, H5S_MAX_RANK, chunk), path);
      if (std::find(chunk, chunk + chunk_rank, 0u) != chunk + chunk_rank)
        refuse(path, "has chunks without elements");
      check_claim(chunk, chunk_rank, entry.element_bytes, from_file, path);
      check_chunks(Shape(extent, extent + rank), Shape(chunk, chunk + chunk_rank), entry.element_bytes, path);
    }
    entry.extent.assign(extent, extent + rank);
    return entry;
  }

  // True when data may be smaller in the file than in memory.
  bool check_filters(hid_t creation, const std::string& path) const {
    bool deflated = false;
    const int filters = must(H5Pget_nfilters(creation), path);
    for (int i = 0; i < filters; ++i) {
      unsigned flags = 0, settings = 0;
      std::size_t values = 0;
      const H5Z_filter_t filter = must(
          H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &settings),
          path);
      if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
        refuse(path, fmt::format("uses filter {}, which is none of deflate, shuffle and fletcher32", filter));
      deflated = deflated || filter == H5Z_FILTER_DEFLATE;
    }
    return deflated;
  }

  // Each is looked up before the data is read, also where a sparse file has them all without any room on
  // disk.
  void check_chunks(const Shape& extent, const Shape& chunk, std::int64_t element_bytes,
                    const std::string& path) const {
    constexpr std::int64_t most_small = 1 << 20, small_bytes = 16 << 10;
    const std::int64_t count = chunk_count(extent, chunk), bytes = element_count(chunk) * element_bytes;
    if (count > most_small && bytes < small_bytes)
      refuse(path, fmt::format("is cut into {} chunks of {} bytes, and so many have at least {} (h5repack "
                               "makes larger ones)",
                               count, bytes, small_bytes));
  }

  static std::int64_t saturated(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
  }

  void check_claim(const hsize_t* extent, int rank, std::int64_t element_bytes, std::int64_t bound,
                   const std::string& path) const {
    // Without elements it claims nothing, but the product of its extents must still fit an integer.
    const bool empty = std::find(extent, extent + rank, 0u) != extent + rank;
    std::int64_t bytes = element_bytes;
    for (int i = 0; i < rank; ++i)
      bytes = saturated(bytes, static_cast<std::int64_t>(std::clamp<hsize_t>(extent[i], 1, INT64_MAX)));
    if (bytes > (empty ? INT64_MAX - 1 : bound))
      refuse(path,
             fmt::format("claims {} bytes, but the file of {} bytes can hold, or the reader accepts, {}",
                         bytes, file_bytes_, bound));
  }

  hid_t file_;
  const std::string& name_;
  std::int64_t file_bytes_, max_dataset_bytes_;
  H5Listing listing_;
  std::set<haddr_t> addresses_;
  std::size_t count_ = 0;
};

}  // namespace

H5Listing preflight(hid_t file, const std::string& file_name, std::int64_t file_bytes,
                    std::int64_t max_dataset_bytes) {
  return Visitor(file, file_name, file_bytes, max_dataset_bytes).run();
}

}  // namespace alpa
