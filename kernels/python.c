/* What Python calls: an extension module for each build, python_avx512 and so on. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kernels.h"

/* An array (N, D) of float32, whose rows may lie apart from each other. */
static int find_rows(PyObject* array, int flags, Py_buffer* rows) {
  if (PyObject_GetBuffer(array, rows, PyBUF_STRIDES | PyBUF_FORMAT | flags)) return -1;
  if (rows->ndim == 2 && strcmp(rows->format, "f") == 0 && rows->strides[0] % (Py_ssize_t)sizeof(float) == 0 &&
      (rows->shape[1] <= 1 || rows->strides[1] == sizeof(float)))
    return 0;
  PyBuffer_Release(rows);
  PyErr_SetString(PyExc_TypeError, "an array (N, D) of float32 is needed, each row in one piece");
  return -1;
}

static int64_t stride_of(const Py_buffer* rows) { return rows->strides[0] / (Py_ssize_t)sizeof(float); }

static PyObject* json_rows(PyObject* Py_UNUSED(module), PyObject* array) {
  Py_buffer rows;
  if (find_rows(array, 0, &rows)) return NULL;
  int64_t N = rows.shape[0], D = rows.shape[1];
  PyObject* json = PyBytes_FromStringAndSize(NULL, MOST_JSON * (N * (D + 1) + 2));
  if (json) _PyBytes_Resize(&json, write_json(rows.buf, N, D, stride_of(&rows), PyBytes_AS_STRING(json)));
  PyBuffer_Release(&rows);
  return json;
}

static PyObject* unit_rows_into(PyObject* Py_UNUSED(module), PyObject* const* arrays, Py_ssize_t count) {
  Py_buffer rows, scaled;
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "two arrays are needed");
    return NULL;
  }
  if (find_rows(arrays[0], 0, &rows)) return NULL;
  if (find_rows(arrays[1], PyBUF_WRITABLE, &scaled)) {
    PyBuffer_Release(&rows);
    return NULL;
  }
  bool alike = rows.shape[0] == scaled.shape[0] && rows.shape[1] == scaled.shape[1];
  if (alike)
    unit_rows(rows.buf, rows.shape[0], rows.shape[1], stride_of(&rows), scaled.buf, stride_of(&scaled));
  else
    PyErr_SetString(PyExc_ValueError, "the arrays differ in shape");
  PyBuffer_Release(&rows);
  PyBuffer_Release(&scaled);
  return alike ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
    {"json_rows", json_rows, METH_O, "The JSON of an array (N, D) of float32."},
    {"unit_rows_into", (PyCFunction)(void (*)(void))unit_rows_into, METH_FASTCALL,
     "Write the rows of an array (N, D) of float32, scaled to length 1, into another one."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "heedful.kernels", .m_size = 0, .m_methods = functions};

#define NAMED(name) PyInit_python_##name
#define INIT(name) NAMED(name)
PyMODINIT_FUNC INIT(BUILD)(void) { return PyModuleDef_Init(&module); }
