"""Reuse of freed tensor objects, like Python's free list of floats. Most ops create short-lived tensors.

Python frees an instance of a Python class by searching for attributes that the class may have added. Tensor
adds only a dict to TensorBase, for attributes of the user. An instance without this dict, .grad, link, and so
on is freed in one step, and its memory is reused for the next tensor. Instances of subclasses are freed by
Python.
"""
from cpython.object cimport PyObject, PyTypeObject, destructor

from flowedu.core.eager.dispatch cimport TensorBase
from flowedu.core.values.storage cimport block_drop

from flowedu.core.eager.tensor import Tensor

cdef extern from *:
    """
    #define FE_KEPT 128
    static PyTypeObject *fe_type, *fe_base;
    static PyObject *fe_kept[FE_KEPT];
    static int fe_count = 0;

    static PyObject *fe_alloc(PyTypeObject *type, Py_ssize_t items) {
        PyObject *o;
        if (fe_count == 0 || type != fe_type)
            return PyType_GenericAlloc(type, items);
        o = fe_kept[--fe_count];
        memset((char *)o + sizeof(PyObject), 0, (size_t)type->tp_basicsize - sizeof(PyObject));
        PyObject_Init(o, type);
        PyObject_GC_Track(o);
        return o;
    }

    static void fe_free(void *o) {
        if (fe_count < FE_KEPT && Py_TYPE((PyObject *)o) == fe_type)
            fe_kept[fe_count++] = (PyObject *)o;
        else
            PyObject_GC_Del(o);
    }

    static int fe_unusual(PyObject *o) {             /* a subclass, __del__, weak references, or a dict */
        PyObject **dict;
        if (Py_TYPE(o) != fe_type || fe_type->tp_finalize
                || *(PyObject **)((char *)o + fe_type->tp_weaklistoffset))
            return 1;
        dict = _PyObject_GetDictPtr(o);
        return dict && *dict;
    }

    /* The slow path. Freeing may recurse into other tensors, so Python's trashcan limits the depth. */
    static void fe_dealloc_any(PyObject *o, destructor own) {
        PyTypeObject *type = Py_TYPE(o);
        PyObject **dict;
        if (type == fe_type && type->tp_finalize && PyObject_CallFinalizerFromDealloc(o) < 0)
            return;                                  /* __del__ revived the object */
        PyObject_GC_UnTrack(o);
        Py_TRASHCAN_BEGIN(o, own)
        dict = _PyObject_GetDictPtr(o);
        if (dict)
            Py_CLEAR(*dict);
        fe_base->tp_dealloc(o);
        Py_DECREF(type);
        Py_TRASHCAN_END
    }

    static void fe_take_over(PyObject *type, PyObject *base, destructor own) {
        PyTypeObject *t = (PyTypeObject *)type, *b = (PyTypeObject *)base;
        if (t->tp_base != b || t->tp_basicsize != b->tp_basicsize || t->tp_alloc != PyType_GenericAlloc)
            return;                                  /* the class adds fields, so it is left unchanged */
        fe_type = t, fe_base = b;
        t->tp_alloc = fe_alloc, t->tp_free = fe_free, t->tp_dealloc = own;
    }
    """
    PyTypeObject *fe_type
    bint fe_unusual(PyObject *) noexcept
    void fe_free(void *) noexcept
    void fe_dealloc_any(PyObject *, destructor) noexcept
    void fe_take_over(object, object, destructor)
    void PyObject_GC_UnTrack(void *) noexcept
    void give_up "Py_DECREF"(PyObject *) noexcept


cdef void drop(PyObject *o) noexcept:
    """Free a tensor whose last reference was deleted. A new reference here would call this function again."""
    cdef void *node
    if fe_unusual(o) or (<TensorBase>o)._grad is not None or (<TensorBase>o).link is not None \
            or (<TensorBase>o).rare is not None or (<TensorBase>o)._layout is not None:
        fe_dealloc_any(o, <destructor>drop)
        return
    PyObject_GC_UnTrack(o)
    give_up(<PyObject *>(<TensorBase>o)._grad)             # these four are None
    give_up(<PyObject *>(<TensorBase>o).link)
    give_up(<PyObject *>(<TensorBase>o).rare)
    give_up(<PyObject *>(<TensorBase>o)._layout)
    give_up(<PyObject *>(<TensorBase>o).node)
    if (<TensorBase>o).block != NULL:
        block_drop((<TensorBase>o).block)
    fe_free(o)
    give_up(<PyObject *>fe_type)                           # each instance holds a reference to its class


fe_take_over(Tensor, TensorBase, <destructor>drop)
