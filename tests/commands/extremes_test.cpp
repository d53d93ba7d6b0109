// Options, settings, clusters and pins drawn at random, extremes among them, given to the commands: whatever
// they are, a command ends with an exit status that share/doc/exit-codes.md names, by no signal, within its time limit, and
// says once what was wrong. The first draws of each kind are looked at; ALPA_DRAWS=500 looks at as many.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <random>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kTimeLimit_s = 2;

/// Planning ends by --time-limit; starting, putting the plan together and writing it come on top, on a
/// machine that does other things.
constexpr double kMargin_s = 40;

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }
  bool once_in(int n) { return below(n) == 0; }
  std::string one_of(const std::vector<std::string>& words) { return words[below(std::ssize(words))]; }

  /// One that makes sense, or, once in `rarity`, one that might break something.
  std::string sound_or(int rarity, const std::vector<std::string>& sound,
                       const std::vector<std::string>& extreme) {
    return one_of(once_in(rarity) ? extreme : sound);
  }
  std::string integer(int rarity, const std::vector<std::string>& sound) {
    return sound_or(rarity, sound,
                    {"0",
                     "-1",
                     "1",
                     "3",
                     "1023",
                     "65536",
                     "1048576",
                     "2147483647",
                     "2147483648",
                     "4294967296",
                     "1000000000",
                     "9007199254740993",
                     "9223372036854775807",
                     "-9223372036854775808",
                     "18446744073709551616",
                     "1e3",
                     "0x10",
                     "nan",
                     "''",
                     "seven"});
  }
  std::string number(int rarity, const std::vector<std::string>& sound) {
    return sound_or(rarity, sound,
                    {"0", "-1", "1e-320", "1e-300", "1e-30", "1e30", "1e300", "1.7976931348623157e308", "inf",
                     "-inf", "nan", "-0.0", "0.9999999999999999", "1e400", "''", "much"});
  }

 private:
  std::mt19937_64 random_;
};

int draws(int usual) {
  const char* const asked = std::getenv("ALPA_DRAWS");
  return asked ? std::stoi(asked) : usual;
}

class Extremes : public Workplace {
 protected:
  void expect_in_order(const std::string& command) {
    SCOPED_TRACE(command);
    const auto begin = std::chrono::steady_clock::now();
    const CommandResult result = run(command);
    const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ++statuses_[result.status];
    EXPECT_LT(took_s, kTimeLimit_s + kMargin_s) << result.output;
    EXPECT_THAT(result.status, AnyOf(0, 2, 3, 4, 5)) << result.output;
    if (result.status == 0) {
      EXPECT_THAT(result.output, Not(testing::ContainsRegex("[ -](nan|inf)[ ,\n]")));
    } else {
      EXPECT_THAT(result.output, HasSubstr("error: "));
      EXPECT_EQ(result.output.find("error: "), result.output.rfind("error: ")) << result.output;
    }
    for (const char* report : {"Sanitizer", "runtime error", "Assertion", "terminate called", "fault of",
                               "report the", "put together wrongly"})
      EXPECT_THAT(result.output, Not(HasSubstr(report)));
  }

  /// A fuzz whose inputs are all refused, or all taken, shows nothing.
  void expect_both_ends() const {
    int all = 0, refused = 0;
    for (const auto& [status, count] : statuses_) {
      all += count;
      refused += status == 0 ? 0 : count;
    }
    EXPECT_GE(refused, all / 10) << "of " << all;
    EXPECT_LE(refused, all - all / 10) << "of " << all;
  }

  static std::string quick_plan(const std::string& rest,
                                const std::string& time_limit = std::to_string(kTimeLimit_s)) {
    return "alpa-plan model.toml --out plan.h5 --time-limit " + time_limit + " " + rest;
  }

  std::map<int, int> statuses_;  ///< how many commands ended with each
};

std::string model_toml(const std::string& base, Draws& draw, int rarity) {
  const auto setting = [&](const char* name, const std::string& value) {
    return draw.once_in(3) ? std::string(name) + " = " + value + "\n" : "";
  };
  std::string text = "base = \"" + base + "\"\nname = " +
                     draw.sound_or(2 * rarity, {"\"model\""}, {"\"\"", "\"a\\u001b[2J\"", "\"a\\nb\"", "3"}) +
                     "\n";
  text += "[dimensions]\n" + setting("model", draw.integer(rarity, {"16", "32", "64"})) +
          setting("layers", draw.integer(rarity, {"1", "2", "3"})) +
          setting("vocabulary", draw.integer(rarity, {"64", "100"}));
  return text + "[training]\n" + setting("batch", draw.integer(rarity, {"4", "8", "12"})) +
         setting("sequence", draw.integer(rarity, {"8", "16"})) +
         setting("precision", draw.one_of({"\"f32\"", "\"bf16\""})) +
         setting("learning_rate", draw.number(rarity, {"0.001", "0.1"})) +
         setting("epsilon", draw.number(rarity, {"1e-8", "1e-5"})) +
         setting("beta1", draw.number(rarity, {"0.9", "0"})) +
         setting("beta2", draw.number(rarity, {"0.99", "0"})) +
         setting("weight_decay", draw.number(rarity, {"0", "0.1"})) +
         setting("gradient_clip", draw.number(rarity, {"0", "1.0"})) +
         setting("steps", draw.integer(rarity, {"2", "1000"})) +
         setting("warmup_steps", draw.integer(rarity, {"0", "5"})) +
         setting("seed", draw.integer(rarity, {"1", "17"})) +
         setting("group_samples", draw.integer(rarity, {"1", "2"}));
}

std::string cluster_toml(Draws& draw, int rarity) {
  const auto link = [&] {
    return "{ latency_us = " + draw.number(2 * rarity, {"5", "0", "100"}) +
           ", gb_per_s = " + draw.number(2 * rarity, {"3", "0.01", "600"}) + " }\n";
  };
  return "name = " + draw.sound_or(2 * rarity, {"\"c\""}, {"\"\"", "\"\\u0007\"", "[]"}) + "\ndevice = " +
         draw.sound_or(2 * rarity, {"\"CPU, 1 thread\"", "\"NVIDIA H100\""}, {"\"\"", "\"\\u009b\""}) +
         "\nnodes = " + draw.integer(rarity, {"1", "2", "3", "4", "16", "2048", "65536"}) +
         "\ndevices_per_node = " + draw.integer(rarity, {"1", "2", "3", "4", "8", "72", "1024"}) +
         "\nmemory_gib = " + draw.number(rarity, {"0.001", "0.1", "2", "80", "1000"}) +
         "\nf32_tflops = " + draw.number(2 * rarity, {"0.06", "60", "1e-12", "1e6"}) +
         "\nbf16_tflops = " + draw.number(2 * rarity, {"0.03", "990"}) +
         "\nmemory_gb_per_s = " + draw.number(2 * rarity, {"8", "3000", "1e-9"}) +
         "\nlaunch_us = " + draw.number(2 * rarity, {"0", "1", "1e9"}) + "\nwithin_node = " + link() +
         "between_nodes = " + link();
}

/// Stages of a model of six layers, most of the time.
std::string pin_toml(Draws& draw, int rarity) {
  std::string text = "micro_batches = " + draw.integer(rarity, {"1", "2", "4"}) +
                     "\nschedule = " + draw.sound_or(2 * rarity, {"\"1f1b\"", "\"gpipe\""}, {"\"\"", "1"}) +
                     "\n";
  const std::int64_t stages = draw.once_in(rarity) ? draw.below(40) : 1 + draw.below(3);
  for (std::int64_t s = 0; s < stages; ++s) {
    const std::int64_t axes = draw.once_in(rarity) ? draw.below(9) : draw.below(3);
    std::string mesh, roles;
    for (std::int64_t a = 0; a < axes; ++a) {
      mesh += (a ? ", " : "") + draw.integer(2 * rarity, {"2", "2", "4"});
      roles += (a ? ", " : "") +
               draw.sound_or(2 * rarity, {"\"data\"", "\"tensor\"", "\"free\"", "\"sequence\"", "\"ring\""},
                             {"\"\""});
    }
    text += "[[stage]]\nlayers = " + draw.integer(rarity, {std::to_string(6 / stages)}) + "\nmesh = [" +
            mesh + "]\n" + (draw.once_in(2) ? "axes = [" + roles + "]\n" : "") +
            "state_sharding = " + draw.one_of({"\"free\"", "\"none\"", "\"optimizer\"", "\"parameters\""}) +
            "\n";
  }
  return text;
}

TEST_F(Extremes, OfOptionsEndAsReadmeSays) {
  Draws draw(1);
  write("model.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"model\"\n");
  make_plan("serial", "--method serial --time-limit 2", "model.toml");
  const std::vector<std::string> methods{"auto",     "search",     "serial", "zero-3",
                                         "megatron", "inter-only", "no-such"};
  const int drawn = draws(16);
  for (int i = 0; i < drawn; ++i) {
    constexpr int rarity = 3;
    std::string options;
    const auto option = [&](const char* name, const std::string& value) {
      if (draw.once_in(3)) options += " " + std::string(name) + " " + value;
    };
    if (draw.once_in(2)) {
      option("--devices", draw.integer(rarity, {"0", "1", "2", "4"}));
      option("--micro-batches", draw.integer(rarity, {"0", "1", "2", "8"}));
      option("--layers", draw.integer(rarity, {"0", "2", "6"}));
      option("--threads", draw.integer(rarity, {"0", "1", "2"}));
      option("--method", draw.one_of(methods));
      option("--schedule", draw.one_of({"1f1b", "gpipe"}));
      option("--rematerialize", draw.one_of({"auto", "never", "always", "selective"}));
      const std::string serial = " --method serial";
      expect_in_order(draw.once_in(4)
                          ? quick_plan("--cluster " + cluster_ + serial, draw.number(2, {"1", "1.5"}))
                          : quick_plan("--cluster " + cluster_ + options));
    } else {
      option("--steps", draw.integer(rarity, {"0", "1", "20"}));
      option("--checkpoint-every", draw.integer(rarity, {"0", "1", "5"}));
      option("--keep", draw.integer(rarity, {"0", "1", "3"}));
      option("--evaluate-every", draw.integer(rarity, {"0", "1"}));
      option("--evaluation-batches", draw.integer(rarity, {"1", "2"}));
      option("--progress-s", draw.number(rarity, {"0", "0.1"}));
      option("--max-hours", draw.number(rarity, {"0", "1"}));
      option("--end-time", draw.number(rarity, {"0", "4e9"}));
      option("--hang-timeout", draw.number(rarity, {"60", "1800"}));
      option("--threads", draw.integer(rarity, {"0", "1", "2"}));
      option("--resume", draw.one_of({"auto", "never", "must", "nowhere.h5"}));
      const std::string data =
          draw.sound_or(rarity, {"synthetic:64", "synthetic:64:1000"},
                        {"synthetic:0", "synthetic:-1", "synthetic:9223372036854775807", "synthetic:64:1",
                         "synthetic:64:9223372036854775807", "synthetic", "/dev/null", "/dev/zero", "."});
      expect_in_order("alpa-train serial.h5 --dry-run --run-dir run --data " + data + options);
    }
  }
  expect_both_ends();
}

TEST_F(Extremes, OfSettingsEndAsReadmeSays) {
  Draws draw(2);
  const std::vector<std::string> bases{"tiny_gpt", "tiny_mlp", "tiny_moe", "tiny_bert"};
  const int drawn = draws(10);
  for (int i = 0; i < drawn; ++i) {
    write("model.toml", model_toml(ALPA_SOURCE_DIR "/tests/data/" + draw.one_of(bases) + ".toml", draw, 12));
    expect_in_order(quick_plan("--method serial --cluster " + cluster_));
    if (!std::filesystem::exists(path("plan.h5"))) continue;
    expect_in_order("alpa-train plan.h5 --dry-run --run-dir run --data synthetic:64");
    std::filesystem::remove(path("plan.h5"));
  }
  expect_both_ends();
}

TEST_F(Extremes, OfClustersAndPinsEndAsReadmeSays) {
  Draws draw(3);
  write("model.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"model\"\n");
  const int drawn = draws(10);
  for (int i = 0; i < drawn; ++i) {
    const bool pinned = draw.once_in(2);
    write("cluster.toml", cluster_toml(draw, pinned ? 60 : 12));
    write("pin.toml", pin_toml(draw, 10));
    expect_in_order(quick_plan("--cluster cluster.toml" + std::string(pinned            ? " --pin pin.toml"
                                                                      : draw.once_in(2) ? " --devices 4"
                                                                                        : "")));
    if (!std::filesystem::exists(path("plan.h5"))) continue;
    for (const char* command : {"check", "explain", "simulate"})
      expect_in_order("alpa-plan " + std::string(command) + " plan.h5");
    std::filesystem::remove(path("plan.h5"));
  }
  expect_both_ends();
}

}  // namespace
}  // namespace alpa
