"""Oracles: the top directions of a sum over records, privately, by five methods.

Records are whole numbers (`curador.learn.sums`); plans and releasers are made before. Names of planned releases are the
caller's; which method is used is chosen in `curador.learn.estimators.components`.

analyze_gauss.py     one release of PlannedRelease(name): a whole symmetric matrix
    noisy_gram(releaser, name, rows: Whole) -> NoisyMatrix(values, deviation)
    noisy_symmetric(releaser, name, integers, limit=, step=) -> NoisyMatrix      under Laplace noise, too
    symmetric_length(plan, size, limit) -> int;  symmetric_deviation(plan, name, size, limit=, step=) -> float
    spectrum(noisy, count) -> Spectrum(values, vectors, edge, threshold, debiased, cosines, significant)
    noise_edge(size, deviation) -> (edge, threshold);  debias_values(values, size, deviation) -> (values, squared cosines)
    top_symmetric(matrix, count) -> (values, vectors as rows);  top_pairs(matrix, count=1) -> SingularPairs(…)
    debias_pairs(values, shape, deviation) -> (values, squared cosines left, right)

power.py             exact products with public blocks, and iterations of them
    gram_product(rows, adjacency, one_row=) -> Product
    cross_products(left, right, adjacency, coefficients=None) -> (right, left)
    symmetrised_product(left, right, adjacency, coefficients=None) -> Product
    Product: public block (n × k, orthonormal columns) -> ExactProduct(integers, length in l2, step)

                     iterations: `steps` releases of PlannedRelease(name, count=steps)
    power_iteration(releaser, name, product, size=, count=1, steps=6) -> Directions(values, vectors as rows)
    lanczos(releaser, name, product, size=, count=1, steps=6) -> Directions
    alternating_power / alternating_lanczos(releaser, name, right, left, shape=, steps=6) -> Pair(value, left, right)

bingham.py           one direction with no δ; not exact: `exact = False`
    BinghamDirection(span, extent): the mechanism;  law_of(matrix, concentration) -> BinghamLaw
    draw(law, source) -> unit vector
directions.py        what directions cost; `count` releases of PlannedRelease(name, count=count)
    direction(releaser, name, matrix, extent=) -> unit vector;  directions(releaser, name, matrix, extent=, count=) -> rows
    range_of(rows, adjacency) -> R;  direction_plan(goal, name, count=, size=None, spread=None) -> DirectionPlan (a FitPlan)
    concentration(plan, name, extent) -> β;  bounded_range_rho, log_sobolev_rho
    alignment(size, strength) -> E (v·x)² of one spike, for forecasts

oja.py               the thesis's iteration, `steps` releases
    thesis_sigma(epsilon, delta, steps, sensitivity=1.0) -> float
    oja_plan(goal, steps, accountant="thesis" | "tight", name=) -> FitPlan
    oja(releaser, name, product, size=, steps=, accountant=, shift=0.0, start=None) -> Iterate(direction, step)
"""
