#include "libalpa/report/plan_page.h"

#include "libalpa/plan/facts/facts_json.h"
#include "libalpa/plan/facts/legend.h"
#include "libalpa/report/page.h"

namespace alpa {
namespace {

/// Columns: rows with names would take several times the bytes.
JsonObject bars_json(const std::vector<RunBar>& bars) {
  JsonArray kinds, stages, micro_batches, starts, ends, computes, collectives, transfers;
  for (const RunBar& bar : bars) {
    kinds.add(segment_name(bar.kind));
    stages.add(static_cast<int>(bar.stage));
    micro_batches.add(bar.micro_batch);
    starts.add(bar.start_s);
    ends.add(bar.end_s);
    computes.add(bar.compute_s);
    collectives.add(bar.collective_s);
    transfers.add(bar.transfer_s);
  }
  return JsonObject()
      .set("kind", kinds)
      .set("stage", stages)
      .set("micro_batch", micro_batches)
      .set("start_s", starts)
      .set("end_s", ends)
      .set("compute_s", computes)
      .set("collectives_s", collectives)
      .set("transfers_s", transfers);
}

JsonObject picture_json(const StepPicture& picture) {
  JsonArray meshes;
  for (const StepPicture::OfMesh& mesh : picture.meshes) {
    JsonArray stages, at, bytes;
    for (const StageIndex s : mesh.stages) stages.add(static_cast<int>(s));
    for (const MemoryStep& step : mesh.memory) {
      at.add(step.at_s);
      bytes.add(step.bytes);
    }
    meshes.add(JsonObject()
                   .set("stages", stages)
                   .set("bars", bars_json(mesh.bars))
                   .set("memory", JsonObject().set("at_s", at).set("bytes", bytes)));
  }
  return JsonObject()
      .set("micro_batches", picture.micro_batches)
      .set("step_s", picture.step_s)
      .set("meshes", meshes);
}

}  // namespace

JsonObject entry_json(const PageEntry& entry) {
  return JsonObject()
      .set("title", entry.title)
      .set("remark", entry.remark)
      .set("facts", facts_json(entry.facts))
      .set("picture", picture_json(entry.picture))
      .set("what_if", what_if_json(entry.what_if));
}

std::string plan_page(const std::string& skeleton, const std::vector<PageEntry>& entries) {
  JsonArray plans;
  for (const PageEntry& entry : entries) plans.add(entry_json(entry));
  return page_with(skeleton, JsonObject().set("plans", plans).set("legend", legend_json()));
}

}  // namespace alpa
