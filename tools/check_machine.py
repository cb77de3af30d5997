# ruff: noqa: UP031, UP036
"""`check_machine.py [python] [compiler]`: check the requirements, and report a missing one in one line.

This runs before the installation, possibly under an old Python, so it uses only basic syntax.
"""
import os
import sys

INSTALL_GCC = ("on Debian or Ubuntu `apt-get install gcc libc6-dev`, on Fedora `dnf install gcc`, "
               "on macOS `xcode-select --install`")


def which(name):
    from shutil import which as find
    return find(name)


def python():
    if sys.version_info < (3, 11):
        newer = []
        if sys.version_info >= (3, 3):
            newer = [n for n in ("python3.13", "python3.12", "python3.11", "python3.14") if which(n)]
        return "flowedu needs Python 3.11 or newer; %s is %s. %s" % (
            sys.executable, ".".join(map(str, sys.version_info[:3])),
            "You have a newer one: make PYTHON=%s ..." % newer[0] if newer else
            "Install one and say which to use: make PYTHON=/path/to/python3.12 ...")
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return "Python's venv module is missing: on Debian or Ubuntu `apt-get install python3-venv`."
    return None


def compiler():
    import sysconfig
    names = [os.environ.get("CC") or "cc", os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"]
    for name in names:
        program = name.split()[0]
        if not which(program):
            return "There is no C compiler ('%s' not found). Install one: %s." % (program, INSTALL_GCC)
    header = os.path.join(sysconfig.get_path("include"), "Python.h")
    if not os.path.exists(header):
        return ("Python's C headers are missing (%s). Install them: on Debian or Ubuntu "
                "`apt-get install python3-dev`, on Fedora `dnf install python3-devel`." % header)
    return None


if __name__ == "__main__":
    for check in sys.argv[1:]:
        problem = {"python": python, "compiler": compiler}[check]()
        if problem:
            sys.exit(problem)
