// The routines of LAPACK that are used here, for all element types under one name.
//
// Debian's archive of the reference implementation: serial, and without variables that keep their
// values, so that any thread may call it. Matrices are stored by columns. Sizes must be right, as
// the library ends the program where they are not.
#pragma once

#include <complex>
#include <cstddef>

namespace heddle::cpu::lapack {

using Complex = std::complex<float>;

// Fortran takes pointers, and the lengths of strings behind all arguments.
#define HEDDLE_LAPACK_REAL(p, T)                                                                  \
  extern "C" {                                                                                    \
  void p##potrf_(const char*, const int*, T*, const int*, int*, std::size_t);                     \
  void p##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);               \
  void p##orgqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*,    \
                 int*);                                                                           \
  void p##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*,     \
                 const int*, T*, const int*, int*, int*, std::size_t);                            \
  void p##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*,  \
                 const int*, int*, std::size_t, std::size_t);                                     \
  void p##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*, \
                const int*, T*, const int*, int*, std::size_t, std::size_t);                      \
  void p##getrf_(const int*, const int*, T*, const int*, int*, int*);                             \
  void p##getri_(const int*, T*, const int*, const int*, T*, const int*, int*);                   \
  void p##getrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*,       \
                 const int*, int*, std::size_t);                                                  \
  void p##trtri_(const char*, const char*, const int*, T*, const int*, int*, std::size_t,         \
                 std::size_t);                                                                    \
  void p##trtrs_(const char*, const char*, const char*, const int*, const int*, const T*,         \
                 const int*, T*, const int*, int*, std::size_t, std::size_t, std::size_t);        \
  }                                                                                               \
  /* The Cholesky factor of a triangle, in its place. */                                          \
  inline int potrf(char triangle, int n, T* a) {                                                  \
    int info;                                                                                     \
    p##potrf_(&triangle, &n, a, &n, &info, 1);                                                    \
    return info;                                                                                  \
  }                                                                                               \
  /* R above the diagonal, reflectors below it and in tau. */                                     \
  inline int geqrf(int m, int n, T* a, T* tau, T* work, int lwork) {                              \
    int info;                                                                                     \
    p##geqrf_(&m, &n, a, &m, tau, work, &lwork, &info);                                           \
    return info;                                                                                  \
  }                                                                                               \
  /* k columns of Q, of their reflectors. */                                                      \
  inline int orgqr(int m, int k, T* a, const T* tau, T* work, int lwork) {                        \
    int info;                                                                                     \
    p##orgqr_(&m, &k, &k, a, &m, tau, work, &lwork, &info);                                       \
    return info;                                                                                  \
  }                                                                                               \
  /* Singular values, with job 'A' all vectors. */                                                \
  inline int gesdd(char job, int m, int n, T* a, T* s, T* u, T* vt, T* work, int lwork, T*,       \
                   int* iwork) {                                                                  \
    int info;                                                                                     \
    p##gesdd_(&job, &m, &n, a, &m, s, u, &m, vt, &n, work, &lwork, iwork, &info, 1);              \
    return info;                                                                                  \
  }                                                                                               \
  /* Eigenvalues of a triangle's symmetric matrix, with job 'V' vectors in its place. */          \
  inline int eigh(char job, char triangle, int n, T* a, T* w, T* work, int lwork, T*, int,        \
                  int* iwork, int liwork) {                                                       \
    int info;                                                                                     \
    p##syevd_(&job, &triangle, &n, a, &n, w, work, &lwork, iwork, &liwork, &info, 1, 1);          \
    return info;                                                                                  \
  }                                                                                               \
  /* Eigenvalues (real and imaginary parts), with job 'V' right vectors, of pairs as parts. */    \
  inline int geev(char job, int n, T* a, T* wr, T* wi, T* vr, T* work, int lwork) {               \
    const char left = 'N';                                                                        \
    const int one = 1;                                                                            \
    int info;                                                                                     \
    p##geev_(&left, &job, &n, a, &n, wr, wi, nullptr, &one, vr, &n, work, &lwork, &info, 1, 1);   \
    return info;                                                                                  \
  }                                                                                               \
  inline int getrf(int m, int n, T* a, int* pivots) {                                             \
    int info;                                                                                     \
    p##getrf_(&m, &n, a, &m, pivots, &info);                                                      \
    return info;                                                                                  \
  }                                                                                               \
  inline int getri(int n, T* a, const int* pivots, T* work, int lwork) {                          \
    int info;                                                                                     \
    p##getri_(&n, a, &n, pivots, work, &lwork, &info);                                            \
    return info;                                                                                  \
  }                                                                                               \
  /* b becomes x with a^T x = b, of a's LU factors. */                                            \
  inline int getrs_transposed(int n, int k, const T* a, const int* pivots, T* b) {                \
    const char transposed = 'T';                                                                  \
    int info;                                                                                     \
    p##getrs_(&transposed, &n, &k, a, &n, pivots, b, &n, &info, 1);                               \
    return info;                                                                                  \
  }                                                                                               \
  inline int trtri(char triangle, int n, T* a) {                                                  \
    const char not_unit = 'N';                                                                    \
    int info;                                                                                     \
    p##trtri_(&triangle, &not_unit, &n, a, &n, &info, 1, 1);                                      \
    return info;                                                                                  \
  }                                                                                               \
  /* b becomes x with a^T x = b, of one triangle of a. */                                         \
  inline int trtrs_transposed(char triangle, int n, int k, const T* a, T* b) {                    \
    const char transposed = 'T', not_unit = 'N';                                                  \
    int info;                                                                                     \
    p##trtrs_(&triangle, &transposed, &not_unit, &n, &k, a, &n, b, &n, &info, 1, 1, 1);           \
    return info;                                                                                  \
  }

HEDDLE_LAPACK_REAL(s, float)
HEDDLE_LAPACK_REAL(d, double)
#undef HEDDLE_LAPACK_REAL

extern "C" {
void cgesdd_(const char*, const int*, const int*, Complex*, const int*, float*, Complex*,
             const int*, Complex*, const int*, Complex*, const int*, float*, int*, int*,
             std::size_t);
void cheevd_(const char*, const char*, const int*, Complex*, const int*, float*, Complex*,
             const int*, float*, const int*, int*, const int*, int*, std::size_t, std::size_t);
void cgeev_(const char*, const char*, const int*, Complex*, const int*, Complex*, Complex*,
            const int*, Complex*, const int*, Complex*, const int*, float*, int*, std::size_t,
            std::size_t);
}

inline int gesdd(char job, int m, int n, Complex* a, float* s, Complex* u, Complex* vt,
                 Complex* work, int lwork, float* rwork, int* iwork) {
  int info;
  cgesdd_(&job, &m, &n, a, &m, s, u, &m, vt, &n, work, &lwork, rwork, iwork, &info, 1);
  return info;
}
inline int eigh(char job, char triangle, int n, Complex* a, float* w, Complex* work, int lwork,
                float* rwork, int lrwork, int* iwork, int liwork) {
  int info;
  cheevd_(&job, &triangle, &n, a, &n, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info, 1, 1);
  return info;
}
inline int geev(char job, int n, Complex* a, Complex* w, Complex* vr, Complex* work, int lwork,
                float* rwork) {
  const char left = 'N';
  const int one = 1;
  int info;
  cgeev_(&left, &job, &n, a, &n, w, nullptr, &one, vr, &n, work, &lwork, rwork, &info, 1, 1);
  return info;
}

}  // namespace heddle::cpu::lapack
