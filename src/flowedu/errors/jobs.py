"""Errors of jobs: their definition, body, and calls, for core to raise."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.errors import CallError, CheckError, JobBuildAndInferError, UnsupportedError


def not_a_blob(name: str, blob: Any) -> CheckError:
    return CheckError(f"{name}: not a blob",
                      expected="an argument of the job, or a result of an op or a layer",
                      got=type(blob).__name__, fix="pass a result of flow.layers, flow.nn, or flow.math")


def repeated_variable(name: str) -> CheckError:
    return CheckError(f"variable {name!r} already exists, getting the same variable is not allowed when "
                      "param reuse is False", expected="a separate name for each layer of a job", got=name,
                      fix=f"give the second layer another name, e.g. name={name.split('-')[0] + '2'!r}")


def optimizer_variable(name: str, expected: Any, got: Any) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"variable {name!r} of the optimizer exists with another shape or dtype",
                                 expected=str(expected), got=str(got), at="",
                                 fix="rename the variable of the body; the optimizer appends the name of a "
                                 "state to the name of the variable")


def minimize_in_predict_job(name: str) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"{name}: minimize in a predict job", expected='a job of type "train"',
                                 got='"predict"', fix='@flow.global_function("train")')


def loss_not_a_blob(loss: Any) -> CheckError:
    return CheckError("minimize: the loss is not a blob", expected="a blob of the job",
                      got=type(loss).__name__,
                      fix="minimize(loss) with the result of a loss function of flow.nn")


def loss_not_floating(loss: Any) -> JobBuildAndInferError:
    return JobBuildAndInferError("minimize: the loss is not floating point", expected="float32 or float64",
                                 got=repr(loss), fix="cast it, or pass the loss rather than the labels")


def losses_differ(losses: Any) -> JobBuildAndInferError:
    return JobBuildAndInferError("minimize: the losses have different shapes",
                                 expected="one shape", got=", ".join(str(x.shape) for x in losses),
                                 fix="reduce each to its mean first")


def no_loss(name: str) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"{name}: loss blob not found", expected="a minimize(loss) in a train job",
                                 got="none",
                                 fix='add flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], '
                                 '[0.1])).minimize(loss), or type="predict"')


def loss_without_variables(name: str, names: Sequence) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"{name}: the loss does not depend on any trainable variable",
                                 expected="a loss made from a layer's output", got=f"variables {names}",
                                 at="", fix="compute the loss from results of layers with trainable=True")


def decorator_not_called(name: str) -> CheckError:
    return CheckError("global_function: the decorator was not called",
                      expected='@flow.global_function() or @flow.global_function("train")',
                      got=f"@flow.global_function on {name}", fix="add the parentheses")


def unknown_job_type(kind: str) -> CheckError:
    return CheckError("global_function: unknown type", expected='"train" or "predict"', got=repr(kind),
                      fix='@flow.global_function("train") to train, @flow.global_function() for anything '
                      'else')


def not_a_function(fn: Any) -> CheckError:
    return CheckError("global_function: not a function", expected="a function made with def", got=repr(fn),
                      fix="decorate a def; for a callable object: def job(x: ...): return it(x)")


def keyword_arguments(name: str, kwargs: Any, names: Sequence) -> CallError:
    return CallError(f"{name}: jobs take positional arguments only",
                     expected="arrays, in the order of the parameters",
                     got=f"the keyword(s) {', '.join(kwargs)}", fix=f"{name}({', '.join(names)})")


def cleared_job(name: str) -> CheckError:
    return CheckError(f"{name}: the job does not belong to the current session", expected="a job defined "
                      "after the last flow.clear_default_session(), and not replaced by one of the same name",
                      got="a job that was cleared or replaced", fix="define it again")


def no_plan_yet(name: str) -> CheckError:
    return CheckError(f"{name}: there is no plan yet", expected="a call: the shapes of a job with "
                      "tp.ListNumpy arguments or sources are known only then", got="none so far",
                      fix="call the job once, then show it")


def unsupported_argument(name: str, definition: Any) -> UnsupportedError:
    return UnsupportedError(f"{name}: {type(definition).__name__} as an argument", got=repr(definition),
                            expected="tp.Numpy placeholders", fix="tp.Numpy.Placeholder(shape)")


def job_in_body(name: str) -> UnsupportedError:
    return UnsupportedError(f"global_function: {name} is defined inside the body of a job",
                            expected="a definition at the top level", got=f"@flow.global_function on {name} "
                            "while jobs are compiled", fix="move it out of the body")


def late_job(name: str, jobs: Any) -> UnsupportedError:
    return UnsupportedError(f"global_function: {name} is defined after the session started",
                            expected="all jobs defined before the first job call or checkpoint call",
                            got=f"a session that already runs {', '.join(jobs)}",
                            fix="define it earlier, or call flow.clear_default_session() to start over")


def variable_differs(name: str, spec: Any, job: str, earlier: Any) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"variable {name!r} differs between jobs", got=f"{spec} in job {job}",
                                 expected=f"{earlier[0]}, as in job {earlier[4]}",
                                 fix="rename one of the layers")


def no_job() -> CheckError:
    return CheckError("the session has no job",
                      expected="at least one function decorated with @flow.global_function()", got="none",
                      fix="define the jobs before calling checkpoint functions")


def called_in_body(caller: str) -> UnsupportedError:
    """Return the error for a function that cannot be called in the body of a job."""
    return UnsupportedError(f"{caller} was called inside the body of a job", got=f"a call of {caller}",
                            expected="blobs and ops in a body: it describes a graph, or a step of it",
                            fix="call it outside; put code that two jobs share into a plain Python function")


def foreign_blob(blob: Any, where: str) -> CheckError:
    """Return the error for a blob of a job that is used "in job f" or "outside any job"."""
    return CheckError(f"a blob of job {blob.job_name} is used {where}",
                      expected="blobs made in the body that runs now", got=repr(blob),
                      fix="pass values between jobs as NumPy arrays: return one from the first job, feed it "
                      "to the second; share weights by the names of variables")
