#pragma once
// Internal to this module: the only header here that shows HDF5.
#include <hdf5.h>

#include <string>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/tensor_type.h"

namespace alpa {

/// Owns one HDF5 identifier; Close gives it back.
template <herr_t (*Close)(hid_t)>
class H5Handle {
 public:
  H5Handle() = default;
  explicit H5Handle(hid_t id) : id_(id) {}
  ~H5Handle() { reset(); }
  H5Handle(H5Handle&& other) noexcept : id_(other.release()) {}
  H5Handle& operator=(H5Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = other.release();
    }
    return *this;
  }

  operator hid_t() const { return id_; }
  bool valid() const { return id_ >= 0; }
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }

  /// Closes now; false when HDF5 reports a failure (unwritten data, for files).
  bool reset() { return id_ < 0 || Close(release()) >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

using H5File = H5Handle<H5Fclose>;
using H5Object = H5Handle<H5Oclose>;
using H5Dataset = H5Handle<H5Dclose>;
using H5Attribute = H5Handle<H5Aclose>;
using H5Space = H5Handle<H5Sclose>;
using H5Type = H5Handle<H5Tclose>;
using H5List = H5Handle<H5Pclose>;
using H5Driver = H5Handle<H5FDunregister>;

/// To be called before HDF5 is used: switches off its printing of errors, and its loading of filter plug-ins,
/// which a file could otherwise ask for.
void prepare_hdf5();

/// What HDF5 says about the failure of the last call, innermost message first; "" when it says nothing.
/// Clears it.
std::string hdf5_message();

/// The result of a call that can fail only by our own fault or for want of memory or disk.
template <class Result>
Result checked(Result result, const char* doing) {
  if (result < 0)
    throw Error(ErrorKind::run_time, std::string("HDF5 failed ") + doing + ": " + hdf5_message());
  return result;
}

/// bfloat16 as a 16-bit HDF5 float: 1 sign, 8 exponent and 7 mantissa bits, little endian.
H5Type bfloat16_type();

/// IEEE half precision, likewise: 1 sign, 5 exponent and 10 mantissa bits.
H5Type float16_type();

/// The file's type of a tensor's elements; on the little-endian machines we run on, memory's type too.
H5Type element_type(DType);

/// Dataspace of these extents; {} is a scalar.
H5Space simple_space(const Shape& extent);

/// The type of strings of at most `bytes` characters. NUL-terminated, because h5dump prints the NULs of a
/// padded one.
H5Type string_type(std::size_t bytes, bool ascii);

}  // namespace alpa
