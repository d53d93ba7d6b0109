#pragma once
#include <hdf5.h>

namespace alpa {

/// The type that h5py gives str; the caller closes it.
inline hid_t variable_string() {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  return type;
}

}  // namespace alpa
