"""flow.amp: automatic mixed precision with 16-bit floats and float32.

    scaler = flow.amp.GradScaler()
    with flow.amp.autocast("cpu", dtype=flow.float16):
        loss = loss_of(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
from flowedu.nn.amp.casts import autocast, get_autocast_dtype, is_autocast_enabled
from flowedu.nn.amp.grad_scaler import GradScaler, StaticGradScaler
from flowedu.diagnostics.lazy_imports import imported

__all__ = ["GradScaler", "StaticGradScaler", "autocast", "get_autocast_dtype", "is_autocast_enabled"]
imported(__name__)
