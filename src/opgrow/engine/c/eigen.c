/* Householder reflections to a tridiagonal matrix, then QL steps with implicit shifts (Golub and Van Loan, chapter 8).
 *
 * Everything runs along rows: symmetric matrices may be read either way, and eigenvectors are held as rows.
 */
#include "eigen.h"

#define EPSILON 2.220446049250313e-16
/* Steps for one eigenvalue; two or three are usual. */
#define MOST_STEPS 60

static double absolute(double x)
{
    return x < 0.0 ? -x : x;
}

static double dot(const double *restrict a, const double *restrict b, int64_t n)
{
    double sums[OG_LANES] = {0}, total = 0.0;
    int64_t i = 0;
    for (; i + OG_LANES <= n; i += OG_LANES)
        OG_EACH_LANE(l) sums[l] += a[i + l] * b[i + l];
    for (int64_t l = 0; i + l < n; l++)
        sums[l] += a[i + l] * b[i + l];
    OG_EACH_LANE(l) total += sums[l];
    return total;
}

static void add_multiple(double *restrict to, double factor, const double *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * x[i];
}

/* x [n] becomes the v of the reflection I - beta v v' that leaves only its first element, which is returned. */
static double reflection(double *x, int64_t n, double *beta)
{
    double tail = dot(x + 1, x + 1, n - 1), first = x[0];
    *beta = 0.0;
    if (tail == 0.0)
        return first;
    double norm = __builtin_sqrt(first * first + tail), left = first > 0.0 ? -norm : norm;
    x[0] = first - left;
    *beta = 2.0 / (x[0] * x[0] + tail);
    return left;
}

/* matrix = Q T Q' with the reflections of Q in the rows of the matrix right of the diagonal; T has a diagonal and, beside
 * it, off [n - 1]. */
static void tridiagonal(double *matrix, int64_t n, double *diagonal, double *off, double *beta, double *room)
{
    for (int64_t k = 0; k + 1 < n; k++) {
        int64_t size = n - k - 1;
        double *v = matrix + k * n + k + 1, *below = matrix + (k + 1) * n + k + 1;
        diagonal[k] = matrix[k * n + k];
        off[k] = reflection(v, size, beta + k);
        if (beta[k] == 0.0)
            continue;
        memset(room, 0, sizeof(double) * (size_t)size);
        for (int64_t i = 0; i < size; i++)
            add_multiple(room, beta[k] * v[i], below + i * n, size);
        add_multiple(room, -0.5 * beta[k] * dot(room, v, size), v, size);
        for (int64_t i = 0; i < size; i++) {
            double x = v[i], y = room[i], *restrict row = below + i * n;
            for (int64_t j = 0; j < size; j++)
                row[j] -= x * room[j] + y * v[j];
        }
    }
    diagonal[n - 1] = matrix[n * n - 1];
}

/* rows [n][n] = Q', from the reflections that `tridiagonal` has left in the matrix. */
static void collect(const double *matrix, int64_t n, const double *beta, double *rows)
{
    for (int64_t i = 0; i < n * n; i++)
        rows[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
    for (int64_t k = n - 2; k >= 0; k--) {
        int64_t size = n - k - 1;
        const double *v = matrix + k * n + k + 1;
        for (int64_t i = 0; i < size; i++) {
            double *row = rows + (k + 1 + i) * n + k + 1;
            add_multiple(row, -beta[k] * dot(row, v, size), v, size);
        }
    }
}

static void rotate(double *restrict a, double *restrict b, double cosine, double sine, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x = a[i], y = b[i];
        b[i] = sine * x + cosine * y;
        a[i] = cosine * x - sine * y;
    }
}

/* One QL step on the elements first .. last of a tridiagonal matrix. */
static void ql_step(double *diagonal, double *off, int64_t first, int64_t last, double *rows, int64_t n)
{
    double g = (diagonal[first + 1] - diagonal[first]) / (2.0 * off[first]);
    double r = __builtin_sqrt(g * g + 1.0);
    g = diagonal[last] - diagonal[first] + off[first] / (g + (g < 0.0 ? -r : r));
    double sine = 1.0, cosine = 1.0, p = 0.0;
    for (int64_t i = last - 1; i >= first; i--) {
        double f = sine * off[i], b = cosine * off[i];
        r = __builtin_sqrt(f * f + g * g);
        off[i + 1] = r;
        if (r == 0.0) {
            diagonal[i + 1] -= p;
            off[last] = 0.0;
            return;
        }
        sine = f / r;
        cosine = g / r;
        g = diagonal[i + 1] - p;
        r = (diagonal[i] - g) * sine + 2.0 * cosine * b;
        p = sine * r;
        diagonal[i + 1] = g + p;
        g = cosine * r - b;
        rotate(rows + i * n, rows + (i + 1) * n, cosine, sine, n);
    }
    diagonal[first] -= p;
    off[first] = g;
    off[last] = 0.0;
}

static void ascending(double *values, double *rows, int64_t n, double *room)
{
    for (int64_t i = 0; i + 1 < n; i++) {
        int64_t least = i;
        for (int64_t j = i + 1; j < n; j++)
            least = values[j] < values[least] ? j : least;
        if (least == i)
            continue;
        double value = values[i];
        values[i] = values[least];
        values[least] = value;
        memcpy(room, rows + i * n, sizeof(double) * (size_t)n);
        memcpy(rows + i * n, rows + least * n, sizeof(double) * (size_t)n);
        memcpy(rows + least * n, room, sizeof(double) * (size_t)n);
    }
}

int64_t OG_NAME(og_eigen)(double *matrix, int64_t n, double *values, double *room)
{
    double largest = 0.0, unit = 1.0;
    for (int64_t i = 0; i < n * n; i++) {
        double size = absolute(matrix[i]);
        if (!(size <= 1.79e308))
            return 1;
        largest = size > largest ? size : largest;
    }
    if (n == 0)
        return 0;
    /* A power of 2 that keeps squares from overflowing and vanishing. */
    if (largest > 0.0) {
        int64_t bits;
        memcpy(&bits, &largest, sizeof bits);
        bits &= 0x7ff0000000000000;
        bits = bits < 0x0010000000000000 ? 0x0010000000000000 : bits;
        memcpy(&unit, &bits, sizeof unit);
    }
    for (int64_t i = 0; i < n * n; i++)
        matrix[i] /= unit;
    double *rows = room, *off = room + n * n, *beta = off + n, *spare = beta + n;
    off[n - 1] = 0.0;
    tridiagonal(matrix, n, values, off, beta, spare);
    collect(matrix, n, beta, rows);
    for (int64_t first = 0; first < n; first++)
        for (int step = 0; step < MOST_STEPS; step++) {
            int64_t last = first;
            while (last + 1 < n && absolute(off[last]) > EPSILON * (absolute(values[last]) + absolute(values[last + 1])))
                last++;
            if (last == first)
                break;
            ql_step(values, off, first, last, rows, n);
        }
    ascending(values, rows, n, spare);
    for (int64_t i = 0; i < n; i++)
        values[i] *= unit;
    memcpy(matrix, rows, sizeof(double) * (size_t)(n * n));
    return 0;
}

/* Take from a vector what lies along the unit vectors before it, twice for rounding, and make it one itself. Whether
 * something was left. */
static int normalised(double *vectors, int64_t number, int64_t size)
{
    double *vector = vectors + number * size, before = dot(vector, vector, size);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t j = 0; j < number; j++)
            add_multiple(vector, -dot(vector, vectors + j * size, size), vectors + j * size, size);
    double squares = dot(vector, vector, size);
    if (!(squares > 1e-24 * before && squares <= 1.79e308))
        return 0;
    double norm = __builtin_sqrt(squares);
    for (int64_t i = 0; i < size; i++)
        vector[i] /= norm;
    return 1;
}

void OG_NAME(og_orthonormal)(double *vectors, int64_t count, int64_t size)
{
    int64_t next = 0;
    for (int64_t i = 0; i < count; i++)
        while (!normalised(vectors, i, size) && next < size) {
            memset(vectors + i * size, 0, sizeof(double) * (size_t)size);
            vectors[i * size + next++] = 1.0;
        }
}
