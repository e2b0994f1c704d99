"""Any OpenAI-compatible servers: mlx_lm.server, llama.cpp, vLLM, Ollama. Each node is one of them."""
