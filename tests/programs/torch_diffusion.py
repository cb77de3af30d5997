import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms, utils

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
T = 50


class Discs(Dataset):
    def __init__(self, n, transform):
        y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
        self.images = []
        for _ in range(n):
            cx, cy, r = torch.rand(3).tolist()
            self.images.append((((x - 4 - 8 * cx) ** 2
                                 + (y - 4 - 8 * cy) ** 2) < (2 + 2 * r) ** 2).float()[None])
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.transform(self.images[i])


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32, device=t.device) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, c_in, c_out, emb):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, c_in), nn.Conv2d(c_in, c_out, 3, padding=1)
        self.emb = nn.Linear(emb, c_out)
        self.norm2, self.conv2 = nn.GroupNorm(4, c_out), nn.Conv2d(c_out, c_out, 3, padding=1)
        self.skip = nn.Conv2d(c_in, c_out, 1) if c_in != c_out else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.emb(emb)[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + self.skip(x)


class UNet(nn.Module):
    def __init__(self, width=8, emb=32):
        super().__init__()
        self.emb = emb
        self.time = nn.Sequential(nn.Linear(emb, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.inp = nn.Conv2d(1, width, 3, padding=1)
        self.down = ResBlock(width, width, emb)
        self.pool = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.mid = ResBlock(2 * width, 2 * width, emb)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.out_block = ResBlock(3 * width, width, emb)
        self.out = nn.Conv2d(width, 1, 3, padding=1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        emb = self.time(timestep_embedding(t, self.emb))
        h1 = self.down(self.inp(x), emb)
        h2 = self.mid(self.pool(h1), emb)
        return self.out(self.out_block(torch.cat([self.up(h2), h1], dim=1), emb))


betas = torch.linspace(1e-4, 0.1, T, device=device)
alphas = 1.0 - betas
alpha_bar = torch.cumprod(alphas, dim=0)


def q_sample(x0, t, noise):
    a = alpha_bar.gather(0, t).view(-1, 1, 1, 1)
    return a.sqrt() * x0 + (1 - a).sqrt() * noise


@torch.inference_mode()
def sample(model, n):
    model.eval()
    x = torch.randn(n, 1, 16, 16, device=device)
    for i in reversed(range(T)):
        t = torch.full((n,), i, device=device, dtype=torch.long)
        eps = model(x, t)
        mean = (x - betas[i] / torch.sqrt(1 - alpha_bar[i]) * eps) / torch.sqrt(alphas[i])
        x = mean + torch.sqrt(betas[i]) * torch.randn_like(x) if i > 0 else mean
    return x.clamp(-1, 1)


transform = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.Normalize((0.5,), (0.5,))])
loader = DataLoader(Discs(128, transform), batch_size=32, shuffle=True, drop_last=True)
model = UNet().to(device)
ema = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
scaler = torch.amp.GradScaler("cuda", enabled=False)

for epoch in range(10):
    total = 0.0
    for x0 in loader:
        x0 = x0.to(device)
        t = torch.randint(0, T, (x0.shape[0],), device=device)
        noise = torch.randn_like(x0)
        with torch.amp.autocast("cpu", enabled=False):
            loss = F.mse_loss(model(q_sample(x0, t, noise), t), noise)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        with torch.no_grad():
            for p, q in zip(ema.parameters(), model.parameters()):
                p.lerp_(q, 0.1)
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")

utils.save_image(sample(ema, 4), "samples.png", nrow=2, normalize=True, value_range=(-1, 1))
torch.save({"model": model.state_dict(), "ema": ema.state_dict()}, "diffusion.pt")
