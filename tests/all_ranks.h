#pragma once
#include <memory>
#include <utility>

#include "libalpa/comm/communicator.h"
#include "libalpa/h5/tensor_file.h"
#include "tests/mpi_main.h"

namespace alpa {

/// All ranks of the test program, as those that write a file. Collective.
class AllRanks {
 public:
  AllRanks() : AllRanks(nullptr) {}
  explicit AllRanks(std::shared_ptr<const PeerWatch> watch)
      : all_(mpi_session().make_communicator(*host_, std::move(watch))) {}

  Communicator& all() const { return *all_; }
  Stream& stream() const { return *stream_; }
  WritingRanks writing() const { return {*all_, *stream_}; }

 private:
  const std::unique_ptr<Device> host_ = make_cpu_device(1);
  const std::unique_ptr<Stream> stream_ = host_->make_stream();
  const std::unique_ptr<Communicator> all_;
};

}  // namespace alpa
