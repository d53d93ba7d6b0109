#include "apps/described_settings.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

enum class Recompute { automatic, never };

struct SampleSettings {
  int micro_batches = 4;
  double time_limit_s = 240;
  bool dry_run = false;
  std::string name = "here";
  std::vector<std::int64_t> sizes;
  Recompute recompute = Recompute::automatic;
};

void describe(SampleSettings& s, OptionsVisitor& visit) {
  visit.field("micro_batches", s.micro_batches, "how many", between(1, 8));
  visit.field("time_limit", s.time_limit_s, "in seconds", more_than(0));
  visit.field("dry_run", s.dry_run, "look only");
  visit.field("name", s.name, "what it is called", "NAME");
  visit.field("sizes", s.sizes, "in bytes", at_least(1));
  visit.field("recompute", s.recompute, "compute again",
              {{"auto", Recompute::automatic, "where it helps"}, {"never", Recompute::never, "keep all"}});
}

class DescribedSettings : public testing::Test {
 protected:
  const Setting& option(const std::string& name) {
    for (const Setting& setting : options_)
      if (setting.name == name) return setting;
    throw std::out_of_range(name);
  }

  SampleSettings settings_;
  std::vector<Setting> options_ =
      described_settings([this](OptionsVisitor& visit) { describe(settings_, visit); });
};

TEST_F(DescribedSettings, AreOptionsWithDashesInTheOrderOfTheList) {
  std::vector<std::string> names, forms, defaults;
  for (const Setting& setting : options_) {
    names.push_back(setting.name);
    forms.push_back(setting.value_name);
    defaults.push_back(setting.default_value);
  }
  EXPECT_THAT(
      names, ElementsAre("--micro-batches", "--time-limit", "--dry-run", "--name", "--sizes", "--recompute"));
  EXPECT_THAT(forms, ElementsAre("N", "X", "", "NAME", "N,N,...", "auto|never"));
  EXPECT_THAT(defaults, ElementsAre("4", "240", "", "here", "", "auto"));
}

TEST_F(DescribedSettings, HaveTheirRangeAndTheirWordsInTheHelp) {
  EXPECT_EQ(option("--micro-batches").help, "how many; from 1 to 8");
  EXPECT_EQ(option("--name").help, "what it is called");
  EXPECT_THAT(option("--recompute").words,
              ElementsAre("auto         where it helps", "never        keep all"));
}

TEST_F(DescribedSettings, AreSetFromTextsWhateverTheirTypeAndLeaveTheRest) {
  option("--micro-batches").set("8");
  option("--time-limit").set("0.5");
  option("--dry-run").set("");
  option("--sizes").set("1,20,300");
  option("--recompute").set("never");
  EXPECT_EQ(settings_.micro_batches, 8);
  EXPECT_EQ(settings_.time_limit_s, 0.5);
  EXPECT_TRUE(settings_.dry_run);
  EXPECT_THAT(settings_.sizes, ElementsAre(1, 20, 300));
  EXPECT_EQ(settings_.recompute, Recompute::never);
  EXPECT_EQ(settings_.name, "here");
}

TEST_F(DescribedSettings, AreHeldToTheirRangesAndWords) {
  for (const auto& [name, text, message] :
       {std::tuple{"--micro-batches", "9", "--micro-batches: expected an integer, from 1 to 8, found '9'"},
        {"--micro-batches", "99999999999999999999", "from 1 to 8, found '99999999999999999999'"},
        {"--time-limit", "nan", "--time-limit: expected a number, more than 0, found 'nan'"},
        {"--name", "", "--name: expected a text that is not empty"},
        {"--sizes", "1,,2", "--sizes: expected an integer, at least 1, found ''"},
        {"--recompute", "nevr", "expected auto|never, found 'nevr'\n  try: did you mean 'never'?"}})
    EXPECT_THAT(([&, name = name, text = text] { option(name).set(text); }),
                ThrowsMessage<Error>(HasSubstr(message)));
}

}  // namespace
}  // namespace alpa
