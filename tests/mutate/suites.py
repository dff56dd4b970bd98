"""Which tests judge a mutant of which file: names of CTest tests in tiers, the most likely and cheapest first.

A tier is built and run as a whole, its quickest test first; the first red test ends it. A row names its files by
the longest pattern that fits.
"""
import fnmatch
import re

PROGRAM = "cli_(?!lost|demo|memory|speed)"

SUITES = {
    "src/base/*": ["unit_(?!sync|lock|inside|yields|width)", "behaviour_(states|add|order|memory|metrics|limiter_bounded|clock)|fault_",
                   "^model|limiter_model|wheel_model"],
    "src/base/sync*": ["unit_(sync|lock|inside|yields)", "behaviour_(get|wait|drain|timer|pool|clock|fd)",
                       "tso|stress_(meet|timeout|pingpong|mix)"],
    "src/base/fork*": ["behaviour_fork", "behaviour_(pool|timer|delayqueue|metrics)"],
    "src/time/*": ["unit_(timing_wheel|sort|ticks|wheel)|behaviour_(heap|wheel|timer|delayqueue|clock)|wheel_",
                   "behaviour_(delay|burst|policy|within|day|cancel)|fault_oom$", "^model", "^sim(?!_pairs)"],
    "src/limit/*": ["behaviour_(limit|bearer|retry|vectors)|limiter_model|fault_oom_limiter", "^model$",
                    "stress_limiter"],
    "src/metrics/*": ["behaviour_metrics|fault_oom_metrics", "http_(api|bill|listings|paths)", "^model$"],
    "src/queue/*": ["behaviour_(states|rules|checklist|get|delay|retry|vectors)|^model$",
                    "behaviour_|unit_(inside|collide|width|yields|entry|polling)|fault_", "^model|limiter_model", "^sim(?!_pairs)",
                    "stress_(meet|timeout|pool)$"],
    "src/pool/*": ["behaviour_(pool|parallel|settle|dead|retry|metrics_unseen|drain)", "^sim(?!_pairs)", "stress_pool"],
    "src/http/*": ["http_(api|bill|listings)", "http_(paths|hostile|walks)"],
    "cli/*": ["cli_(first|usage|input|command)", PROGRAM],
    "cli/client/*": ["cli_(user|orders|outcome|silence)", PROGRAM],
    "cli/socket/*": ["cli_(user|orders|outcome|socket)", PROGRAM],
    "cli/(queue/dead|base/compare).?": ["cli_(user|orders|outcome|socket)", PROGRAM],
    "cli/socket/(place).?": ["cli_place", PROGRAM],
    "cli/(budget).?": ["cli_(command|crowd)", PROGRAM],
    "cli/files/*": ["cli_(leftover|values|files|output)", PROGRAM, "cli_lost$"],
    "cli/output/(log).?": ["cli_(leftover|values|files|output)", PROGRAM, "cli_lost$"],
    "cli/command/*": ["cli_(stall|command|outlive|output)", PROGRAM],
    "cli/command/(tty).?": ["cli_(tty|terminal)", PROGRAM],
    "cli/(queue/hold|command/words).?": ["cli_(batch|placeholders|command)", PROGRAM],
    "cli/output/*": ["cli_(keep_order|output|stall|files)", PROGRAM],
    "cli/(queue/settle|command/job|phases).?": ["cli_(retry|stop|halt|output)", PROGRAM, "cli_lost$"],
    "cli/(output/report|client/top|notify|help|options|base/parse).?": ["cli_(usage|terminal|top|notify)", PROGRAM],
}


def tiers_of(path):
    """The row's tiers, as patterns of test names."""
    fits = [row for row in SUITES
            if re.fullmatch(row.replace(".?", r"\.[ch]").replace("*", ".*") if "(" in row else fnmatch.translate(row),
                            path)]
    return SUITES[max(fits, key=len)] if fits else []


def choose(path, names):
    """The names of each tier; a test is in the first that names it."""
    left, chosen = set(names), []
    for pattern in tiers_of(path):
        tier = {n for n in left if re.search(pattern, n)}
        left -= tier
        if tier:
            chosen.append(tier)
    return chosen
