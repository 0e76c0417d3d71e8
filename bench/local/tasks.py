"""What is measured, how often, and the names under which it is: plain Python, for every environment.

error     the mean squared error of estimated counts, averaged over all values and runs
bias      how far the mean of the estimates is from the truth, in its standard errors
cover     how many intervals hold the true count
stated    the mean squared error that the paper's formula gives; ideal, with an ideal hash function
speed     seconds from a million people's values to estimates: privatise, aggregate, estimate
stream    reports a second from files of reports through a collector
other     what else takes time: shuffling's ε, heavy hitters
"""

from __future__ import annotations

ERROR, BIAS, COVER, STATED, IDEAL, SPEED, STREAM, OTHER = (
    "error",
    "bias",
    "cover",
    "stated",
    "ideal",
    "speed",
    "stream",
    "other",
)

DIRECT, OPTIMAL, SYMMETRIC, HASHING, HADAMARD, SUBSET, RAPPOR = PROTOCOLS = (
    "direct",
    "unary, optimal",
    "unary, symmetric",
    "hashing",
    "hadamard",
    "subset",
    "rappor",
)
FOREVER = 2.0  # times the ε of one report: what all reports of a person may cost with rappor

CURADOR, PURE_LDP, MULTI_FREQ = "curador", "pure-ldp", "multi-freq-ldpy"
PEERS = (PURE_LDP, MULTI_FREQ)

UNBIASED, CONSISTENT = "unbiased", "consistent"  # as inverted, and made into counts that are at least 0 and add up
LIKELY = "likely"  # curador's other counts of that kind: what they most likely are, seen all together

EPSILONS = (0.5, 1.0, 2.0, 4.0)
ZIPF, UNIFORM = HISTOGRAMS = ("Zipf", "uniform")
PEOPLE, VALUES = 10_000, 100
RUNS = 1_000  # ours
LIKELY_RUNS = 100  # of them with the counts that take long
PEER_RUNS, PEER_SECONDS = 100, 15.0  # of a peer, of CPU; what is done by then counts
FEWEST = 8  # runs of a peer that are worth a comparison

MANY_PEOPLE, MANY_VALUES = 1_000_000, 1_000
SPEED_EPSILONS = (1.0, 4.0)
WHOLE_SECONDS = 6.0  # a peer that takes less for everybody is measured on everybody
PART_PEOPLE = 20_000  # otherwise on so many
PART_SECONDS = 2.0  # or on fewer, where these take longer
PEER_TIMES = 3  # the best counts

STREAM_REPORTS, STREAM_FILES = 10_000_000, 10
STREAM_EPSILON = 1.0

SHUFFLED, FOUND = OTHERS = ("shuffled", "hitters")
SHUFFLED_REPORTS, SHUFFLED_EPSILON, DELTA = 1_000_000, 1.0, 1e-6
FOUND_PEOPLE, FOUND_EPSILON, FOUND_BITS = 1_000_000, 2.0, 32
