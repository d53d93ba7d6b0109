#include "libalpa/cluster/cluster_columns.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

TEST(ClusterColumns, SayOfEachPartHowMuchLongerComputationTakesBesideCommunication) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "cluster.h5";
  Cluster usual{"usual", "CPU", 1, 2, 1 << 30, 6e10, 3e10, 0, 8e9, 1e-6, {5e-6, 3e9}, {6e-6, 2e9}};
  Cluster slow = usual;
  slow.name = "slow";
  slow.overlap_slowdown = 1.25;
  const Cluster cluster = cluster_of_parts("both", {usual, slow});
  H5Writer file(path, "test", "1.0");
  write_cluster(file, cluster);
  file.publish();
  const auto read = [&] { return read_cluster(H5Reader(path, "test", "1.0")); };
  EXPECT_EQ(read(), cluster);

  // Files of before have no such column.
  const hid_t before = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(H5Ldelete(before, "/cluster/parts/overlap_slowdown", H5P_DEFAULT), 0);
  H5Fclose(before);
  for (const Cluster& part : read().parts) EXPECT_EQ(part.overlap_slowdown, 1);
}

}  // namespace
}  // namespace alpa
