#include "libalpa/checkpoint/trained_states.h"

#include <fmt/core.h>

#include "libalpa/base/byte_progress.h"
#include "libalpa/base/error.h"
#include "libalpa/checkpoint/first_rank.h"
#include "libalpa/checkpoint/run_folder.h"

namespace alpa {

std::filesystem::path trained_checkpoint(const TrainedSource& source, const TrainRanks& ranks,
                                         Stream& control, Log& log) {
  if (!source.checkpoint.empty()) return source.checkpoint;
  return text_of_first_rank(ranks.files, control, [&](const BytesRead& read) {
    const auto found = newest_checkpoint(source.run_dir, log, read);
    if (!found)
      throw Error(ErrorKind::input,
                  fmt::format("there is no checkpoint in '{}'", (source.run_dir / "checkpoints").string()),
                  "the --run-dir of a run that has saved one, or a file with --checkpoint");
    return found->path.string();
  });
}

void check_trained_source(const TrainedSource& source) {
  if (source.checkpoint.empty() == source.run_dir.empty())
    throw Error(ErrorKind::usage,
                source.run_dir.empty() ? "neither --checkpoint nor --run-dir is given"
                                       : "--checkpoint and --run-dir are both given",
                "--checkpoint FILE for that one, or --run-dir RUN for the newest good one of a run");
}

CheckpointFacts load_trained(const std::filesystem::path& checkpoint, const Graph& graph, std::int64_t bytes,
                             const TrainRanks& ranks, Stream& control, Log& log,
                             const std::function<CheckpointFacts(const BytesRead&)>& load) {
  on_first_rank(ranks.files, control, [&] { load_checkpoint(checkpoint, graph, {}); });
  const std::string loading = fmt::format("loading '{}'", checkpoint.string());
  ByteProgress progress(loading, bytes, log);
  CheckpointFacts facts;
  in_step(loading, [&] {
    read_together(ranks.files, control, [&](const BytesRead& read) {
      facts = load([&](std::int64_t more) {
        progress.add(more);
        read(more);
      });
    });
  });
  return facts;
}

std::int64_t state_bytes(const Executor& executor) {
  std::int64_t bytes = 0;
  for (const StateTile& tile : executor.state_tiles()) bytes += byte_count(tile.tile);
  return bytes;
}

}  // namespace alpa
