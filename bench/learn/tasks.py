"""What is learned, how often, and the names under which it is measured: plain Python, for every environment.

pca           the first component: how much of the variance along the best one is lost
bilinear      convex regression over matrices of bounded nuclear norm, 20 × 20: excess risk
slope         how the excess of the one-pass method falls with the number of records
ratings       a recommender: root mean squared error on ratings that were held out
million       the time and the memory of a recommender on a million ratings
regression    least squares: R² on rows that were held out
logistic      logistic regression: accuracy and log loss on rows that were held out
clusters      k-means: inertia over that of scikit-learn's
"""

from __future__ import annotations

from dataclasses import dataclass

PCA, BILINEAR, SLOPE, RATINGS, MILLION, REGRESSION, LOGISTIC, CLUSTERS = PARTS = (
    "pca",
    "bilinear",
    "slope",
    "ratings",
    "million",
    "regression",
    "logistic",
    "clusters",
)

EPSILONS = (0.1, 1.0, 4.0)
PURE, DELTA = 0.0, 1e-6
DELTAS = (PURE, DELTA)
ADD_REMOVE, REPLACE_ONE = "add_or_remove_one", "replace_one"

CURADOR, DIFFPRIVLIB, OPENDP, PLAIN, RANDOM = "curador", "diffprivlib", "opendp", "not private", "random"

LOST, EXCESS, RMSE, R2, ACCURACY, LOG_LOSS, INERTIA, SECONDS, PEAK = (
    "lost variance",
    "excess risk",
    "RMSE",
    "R²",
    "accuracy",
    "log loss",
    "inertia",
    "seconds",
    "peak MB",
)
HIGHER_IS_BETTER = {R2, ACCURACY}

CASE_SECONDS = 8  # of CPU, for all runs of one case of a peer; what is done by then counts


# ---- the first component -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spiked:
    """Unit rows whose second moment is θvv' + (1 - θ)I/d, for one direction v."""

    features: int
    records: int
    theta: float

    @property
    def name(self) -> str:
        """Its name in the tables."""
        return f"spiked d={self.features:,} n={self.records:,} θ={self.theta:g}"


SPIKED = (
    Spiked(10, 1_000, 0.1),
    Spiked(10, 100_000, 0.1),
    Spiked(100, 1_000, 0.5),
    Spiked(100, 10_000, 0.1),
    Spiked(100, 100_000, 0.5),
    Spiked(1_000, 1_000, 0.5),
    Spiked(1_000, 10_000, 0.5),
)
LARGEST = Spiked(1_000, 100_000, 0.1)

DIGITS, DIGITS_CENTRED, DIGITS_OWN_CENTRE = "digits", "digits, public centre", "digits, private centre"
ADULT, HOUSING, PUMS, TWEETS = "adult", "california_housing", "pums", "movietweetings"
PCA_TABLES = (f"{ADULT}, 6 columns", f"{HOUSING}, 9 columns", f"{PUMS}, 6 columns")

PCA_RUNS = 50
PCA_RUNS_WIDE = 10  # of large sets, and of methods that "auto" does not take
PCA_RUNS_LARGEST = 5
PCA_METHODS = ("power", "lanczos", "oja")  # beside what "auto" takes
PCA_WIDE = 1_000

# ---- matrices of bounded nuclear norm ------------------------------------------------------------------------------------

BILINEAR_RECORDS = (1_000, 10_000, 100_000)
BILINEAR_RUNS = 5
BILINEAR_FEW = 2  # runs of the one-pass methods, which make a step a record
BILINEAR_SOLVERS = ("pgd", "frank_wolfe", "toeplitz", "tree", "stochastic", "thesis")
BILINEAR_QUICK = ("pgd", "frank_wolfe", "tree")
BILINEAR_PURE = ("pgd", "frank_wolfe")
SLOPE_EPSILON = 8.0
SLOPE_RECORDS = (10_000, 30_000, 100_000)
SLOPE_LONG = 300_000
SLOPE_RUNS = 5

# ---- recommenders ----------------------------------------------------------------------------------------------------------

RATINGS_EPSILONS = (1.0, 2.0, 4.0, 10.0)
RATINGS_RUNS = 5  # on other made-up ratings each
RATINGS_METHODS = ("spectral", "bias", "als", "frank_wolfe")
SYNTHETIC = "synthetic 10,000 × 500"
FILMS, FILMS_SMALL = "films 6,040 × 3,706", "films 943 × 1,682"  # made up, with the popularity of films
FILMS_METHODS = ("spectral", "bias")
FILMS_RUNS = {FILMS: 5, FILMS_SMALL: 10}
MILLIONS = (1_000_000, 10_000_000)  # ratings; the second in long runs only

# ---- regression, classification, clusters --------------------------------------------------------------------------------

MODEL_RUNS = 50
CLUSTER_RUNS = 10
HELD_OUT = 0.2
GENERATED_LINE, GENERATED_LINE_1 = "generated, 10 features", "generated, 1 feature"
GENERATED_CLASSES, GENERATED_BLOBS = "generated, 10 features", "generated, 5 clusters in 4 dimensions"
REGRESSIONS = (GENERATED_LINE, GENERATED_LINE_1, HOUSING, f"{HOUSING}, 1 feature", PUMS)
CLASSIFICATIONS = (GENERATED_CLASSES, ADULT, PUMS)
GENERATED_WIDTHS, ADULT_WIDTHS = "generated, 4 columns of many widths", f"{ADULT}, 5 columns as they come"
WIDE = (GENERATED_WIDTHS, ADULT_WIDTHS)  # in the units of the data, whose widths differ by thousands
CLUSTERINGS = (GENERATED_BLOBS, f"{HOUSING}, places", f"{ADULT}, 3 columns", *WIDE)
CLUSTER_COUNT = {GENERATED_BLOBS: 5, f"{HOUSING}, places": 8, f"{ADULT}, 3 columns": 4, GENERATED_WIDTHS: 4, ADULT_WIDTHS: 4}
AS_THEY_COME, SCALED = "as they come", "scaled"
