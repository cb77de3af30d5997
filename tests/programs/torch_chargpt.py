"""
Trains a character-level language model.
"""
import argparse
import math
import os

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import Dataset
from torch.utils.data.dataloader import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument('--out_dir', default='out-char')
parser.add_argument('--max_iters', type=int, default=30)
parser.add_argument('--resume', action='store_true')
parser.add_argument('--compile', action=argparse.BooleanOptionalAction, default=False)
parser.add_argument('--numpy', action='store_true', help='weights from NumPy, no shuffling')
config = parser.parse_args()

torch.manual_seed(1337)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.set_float32_matmul_precision('high')
device = 'cuda' if torch.cuda.is_available() else 'cpu'
ptdtype = {'float32': torch.float32, 'bfloat16': torch.bfloat16, 'float16': torch.float16}['float32']
n_layer, n_head, n_embd, block_size, batch_size, dropout = 2, 2, 16, 16, 8, 0.0


class CharDataset(Dataset):
    def __init__(self, data):
        chars = sorted(list(set(data)))
        self.stoi = {ch: i for i, ch in enumerate(chars)}
        self.itos = {i: ch for i, ch in enumerate(chars)}
        self.vocab_size = len(chars)
        self.data = data

    def __len__(self):
        return len(self.data) - block_size

    def __getitem__(self, idx):
        chunk = self.data[idx:idx + block_size + 1]
        dix = [self.stoi[s] for s in chunk]
        return torch.tensor(dix[:-1], dtype=torch.long), torch.tensor(dix[1:], dtype=torch.long)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("bias", torch.tril(torch.ones(block_size,
                                                           block_size)).view(1, 1, block_size, block_size))
        self.mlp = nn.ModuleDict(dict(
            c_fc=nn.Linear(n_embd, 4 * n_embd), c_proj=nn.Linear(4 * n_embd, n_embd),
            act=nn.GELU(approximate='tanh'), dropout=nn.Dropout(dropout)))
        m = self.mlp
        self.mlpf = lambda x: m.dropout(m.c_proj(m.act(m.c_fc(x))))

    def attn(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(n_embd, dim=2)
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float('-inf'))
        att = F.softmax(att, dim=-1)
        return self.c_proj((att @ v).transpose(1, 2).contiguous().view(B, T, C))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlpf(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(vocab_size, n_embd), wpe=nn.Embedding(block_size, n_embd),
            h=nn.ModuleList([Block() for _ in range(n_layer)]), ln_f=nn.LayerNorm(n_embd)))
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
        elif isinstance(module, nn.LayerNorm):
            torch.nn.init.zeros_(module.bias)
            torch.nn.init.ones_(module.weight)

    def configure_optimizers(self):
        decay, no_decay = set(), set()
        for mn, m in self.named_modules():
            for pn, p in m.named_parameters():
                fpn = '%s.%s' % (mn, pn) if mn else pn
                if pn.endswith('bias'):
                    no_decay.add(fpn)
                elif pn.endswith('weight') and isinstance(m, (torch.nn.Linear,)):
                    decay.add(fpn)
                elif pn.endswith('weight') and isinstance(m, (torch.nn.LayerNorm, torch.nn.Embedding)):
                    no_decay.add(fpn)
        param_dict = {pn: p for pn, p in self.named_parameters()}
        assert len(decay & no_decay) == 0 and len(param_dict.keys() - (decay | no_decay)) == 0
        return torch.optim.AdamW([
            {"params": [param_dict[pn] for pn in sorted(list(decay))], "weight_decay": 0.1},
            {"params": [param_dict[pn] for pn in sorted(list(no_decay))], "weight_decay": 0.0},
        ], lr=1e-2, betas=(0.9, 0.95))

    def forward(self, idx, targets=None):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


dataset = CharDataset("the quick brown fox jumps over the lazy dog while five wizards box " * 6)
loader = DataLoader(dataset, shuffle=not config.numpy, batch_size=batch_size, num_workers=0, pin_memory=False)
model = GPT(dataset.vocab_size)
print("number of parameters: %d" % sum(p.numel() for p in model.parameters()))
if config.numpy:
    rng = np.random.default_rng(0)
    for name, p in model.named_parameters():
        if p.dim() > 1:
            p.data = torch.from_numpy(rng.normal(0, 0.05, tuple(p.shape)).astype(np.float32))
model.to(device)
optimizer = model.configure_optimizers()
scaler = torch.amp.GradScaler(device, enabled=False)
iter_num = 0
path = os.path.join(config.out_dir, 'ckpt.pt')
if config.resume and os.path.isfile(path):
    checkpoint = torch.load(path, map_location=device)
    model.load_state_dict(checkpoint['model'])
    optimizer.load_state_dict(checkpoint['optimizer'])
    iter_num = checkpoint['iter_num']
    print(f"resuming at {iter_num}")
unoptimized_model = model
model = torch.compile(model, disable=not config.compile)


def get_lr(it):
    return 1e-2 * (it + 1) / 10 if it < 10 else 1e-3 + 0.5 * (1 + math.cos(math.pi * (it - 10) / 50)) * 9e-3


model.train()
batches = iter(loader)
for _ in range(iter_num):
    next(batches)
while iter_num < config.max_iters:
    for param_group in optimizer.param_groups:
        param_group['lr'] = get_lr(iter_num)
    x, y = [t.to(device, non_blocking=True) for t in next(batches)]
    with torch.amp.autocast(device_type=device, dtype=ptdtype, enabled=False):
        logits, loss = model(x, y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if iter_num % 3 == 0:
        print(f"iter {iter_num} loss: {loss.item():.4f} norm {norm:.4f}")
    iter_num += 1

os.makedirs(config.out_dir, exist_ok=True)
torch.save({'model': unoptimized_model.state_dict(), 'optimizer': optimizer.state_dict(),
            'iter_num': iter_num, 'config': vars(config)}, path)
model.eval()
with torch.no_grad():
    context = torch.tensor([dataset.stoi[s] for s in "the "], dtype=torch.long)[None, ...].to(device)
    for _ in range(12):
        logits, _ = model(context[:, -block_size:])
        context = torch.cat((context, torch.topk(logits[:, -1, :], k=1, dim=-1)[1]), dim=1)
print(repr(''.join(dataset.itos[int(i)] for i in context[0])))
