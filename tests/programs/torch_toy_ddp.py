import os
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

CHECKPOINT_PATH = "model.checkpoint"


def setup(rank, world_size):
    os.environ['MASTER_ADDR'] = 'localhost'
    os.environ.setdefault('MASTER_PORT', '12355')
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


class ToyModel(nn.Module):
    def __init__(self):
        super(ToyModel, self).__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.norm = nn.BatchNorm1d(10)
        self.net2 = nn.Linear(10, 5)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return self.net2(self.norm(self.relu(self.net1(x))))


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 10)).astype(np.float32)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(np.sin(x[:, :5]).copy()))


def demo_basic(rank, world_size):
    setup(rank, world_size)

    model = ToyModel()
    rng = np.random.default_rng(1 + rank)          # DDP uses rank 0's values
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape)).astype(np.float32)))
    ddp_model = DDP(model, find_unused_parameters=True, broadcast_buffers=True)

    sampler = DistributedSampler(data(), num_replicas=world_size, rank=rank, shuffle=False)
    loader = DataLoader(data(), batch_size=8, sampler=sampler)
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.05, momentum=0.9)

    for epoch in range(4):
        sampler.set_epoch(epoch)
        total = torch.zeros(())
        for i, (inputs, labels) in enumerate(loader):
            if i == 1:                              # gradients are added and averaged with the next batch
                with ddp_model.no_sync():
                    loss_fn(ddp_model(inputs), labels).backward()
                continue
            loss = loss_fn(ddp_model(inputs), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(ddp_model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} loss: {total.item() / world_size:.5f}", flush=True)

    if rank == 0:
        torch.save(ddp_model.module.state_dict(), CHECKPOINT_PATH)
    dist.barrier()
    fresh = ToyModel()
    fresh.load_state_dict(torch.load(CHECKPOINT_PATH, map_location={'cuda:0': 'cpu'}, weights_only=True))
    for a, b in zip(fresh.parameters(), ddp_model.parameters()):
        assert torch.equal(a, b)
    if rank == 0:
        names = list(ddp_model.state_dict())
        print(f"{len(names)} entries, first {names[0]}, norm: "
              f"{sum(p.norm().item() for p in fresh.parameters()):.5f}",
              f"mean {fresh.norm.running_mean.abs().sum().item():.5f}", flush=True)
    cleanup()


if __name__ == "__main__":
    world_size = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    mp.spawn(demo_basic, args=(world_size,), nprocs=world_size, join=True)
